//! Tables of beliefs and truths.
