"""Errors: one class for each kind, with the library's message.

All of them are :class:`PrslError`, and a ``ValueError`` too.

>>> import prsl
>>> try:
...     prsl.Model.parse("label weather: sun, rain\\nrule 0.9: snow")
... except prsl.errors.TextError as error:
...     print(str(error).splitlines()[0])
2:11: unknown category `snow`; declare it as a category of a label, or as a label of its own
"""


class PrslError(ValueError):
    """Invalid input; the message says what is wrong, and where."""


class PrslWarning(UserWarning):
    """Input that is probably a mistake."""


class ModelError(PrslError):
    """An invalid model."""


class BeliefError(PrslError):
    """Invalid beliefs."""


class LearningError(PrslError):
    """Learning is not possible with this input."""


class ArgumentError(PrslError):
    """An argument has an unknown value."""


class DataError(PrslError):
    """An invalid table or dataset."""


class FileError(PrslError, OSError):
    """A file cannot be read or written."""


class TextError(ModelError):
    """A model's text has errors, all of them listed."""


class FormulaError(ModelError):
    """A rule's text has errors."""


class JsonError(ModelError):
    """A model in JSON has an error."""


class VersionError(ModelError):
    """A model was written by a newer prsl."""


class TooLargeError(ModelError):
    """A model's text is too large to be one."""


class EmptyNameError(ModelError):
    """A name has no characters."""


class DuplicateLabelError(ModelError):
    """Two labels have the same name."""


class TooFewCategoriesError(ModelError):
    """A label has fewer than two categories."""


class DuplicateCategoryError(ModelError):
    """Two categories of a label have the same name."""


class LengthError(BeliefError):
    """A distribution has too many or too few numbers."""


class NotAProbabilityError(BeliefError):
    """A number in a distribution is not a probability."""


class SumError(BeliefError):
    """A distribution does not sum to 1."""


class RowLengthError(BeliefError):
    """A row does not have one number for each category, or one truth for each label."""


class ForeignRowError(BeliefError):
    """The rows belong to a model with other labels."""


class RowCountError(BeliefError):
    """Two inputs have different numbers of rows."""


class UnknownRowError(BeliefError):
    """There is no such row."""


class ZeroBeliefError(BeliefError):
    """A belief is 0 everywhere."""


class LatentError(BeliefError):
    """A label without a classifier was given a belief."""


class GivenTwiceError(BeliefError):
    """A label was given twice."""


class CategoryGivenTwiceError(BeliefError):
    """A category was given twice in one belief."""


class UnknownLabelError(ModelError):
    """There is no such label."""


class UnknownCategoryError(ModelError):
    """There is no such category."""


class UnknownRuleError(ModelError):
    """There is no such rule."""


class DuplicateRuleError(ModelError):
    """Two rules have the same name."""


class RuleProbabilityError(ModelError):
    """The probability of a rule is not a probability."""


class LearnedNoteError(ModelError):
    """An impossible number in the note about how a rule was learned."""


class InhibitionProbabilityError(ModelError):
    """An inhibition probability is not a probability."""


class RepeatedInhibitionError(ModelError):
    """A noisy-or rule names a category twice."""


class EmptyNoisyOrError(ModelError):
    """A noisy-or rule names no category."""


class TooDeepError(ModelError):
    """A formula is nested too deeply."""


class CountError(ModelError):
    """A count is larger than the number of its formulas."""


class EmptyAtomError(ModelError):
    """A formula names a label without a category."""


class CombinationWeightError(ModelError):
    """The weight of a typical combination is negative or not finite."""


class DuplicateCombinationError(ModelError):
    """A typical combination occurs twice."""


class IncompleteCombinationError(ModelError):
    """A typical combination does not name a category of every label."""


class ImpossibleError(PrslError):
    """Rules and evidence exclude every assignment."""


class TooCostlyError(PrslError):
    """Exact inference exceeds the limits."""


class SettingError(PrslError):
    """A setting is out of its range."""


class NoStartError(PrslError):
    """No possible initial assignment was found for sampling."""


class NoAssignmentError(PrslError):
    """Neither a possible assignment nor a proof that there is none was found."""


class NothingToSimulateError(PrslError):
    """No model of this kind exists."""


class CalibratorError(PrslError):
    """A calibrator does not match its label."""


class CalibrationError(LearningError):
    """No calibrator can be fitted to these rows."""


class ExamplesError(LearningError):
    """Nothing can be learned from these rows."""


class SumsError(LearningError):
    """Sums over rows do not add up."""
