//! Random small models and named tolerances for the tests of prsl.
