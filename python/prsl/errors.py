"""What can be wrong: one class for each kind of error, carrying the library's sentence.

All of them are :class:`PrslError`, and a ``ValueError`` too.

>>> import prsl
>>> try:
...     prsl.Model.parse("label weather: sun, rain\\nrule 0.9: snow")
... except prsl.errors.TextError as error:
...     print(str(error).splitlines()[0])
2:11: unknown category `snow`; declare it as a category of a label, or as a label of its own
"""


class PrslError(ValueError):
    """Something is wrong with what prsl was given; the message says what, and where."""


class PrslWarning(UserWarning):
    """Something is probably not meant like this."""


class ModelError(PrslError):
    """A model does not make sense."""


class BeliefError(PrslError):
    """Beliefs do not make sense."""


class LearningError(PrslError):
    """Nothing can be learned from this."""


class ArgumentError(PrslError):
    """An argument is not one of those that are known."""


class DataError(PrslError):
    """A table or a dataset cannot be understood."""


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


class RowCountError(BeliefError):
    """There is not one of something for each row."""


class UnknownRowError(BeliefError):
    """There is no such row."""


class ZeroBeliefError(BeliefError):
    """A belief is 0 everywhere."""


class LatentError(BeliefError):
    """A label that no classifier speaks about was given a belief."""


class GivenTwiceError(BeliefError):
    """A label was given twice."""


class UnknownLabelError(ModelError):
    """There is no such label."""


class UnknownCategoryError(ModelError):
    """There is no such category."""


class UnknownRuleError(ModelError):
    """There is no such rule."""


class DuplicateRuleError(ModelError):
    """Two rules have the same name."""


class RuleProbabilityError(ModelError):
    """The probability of a rule is not one."""


class InhibitionProbabilityError(ModelError):
    """An inhibition probability is not one."""


class RepeatedInhibitionError(ModelError):
    """A noisy-or rule names a category twice."""


class EmptyNoisyOrError(ModelError):
    """A noisy-or rule is about nothing."""


class TooDeepError(ModelError):
    """A formula is nested too deeply."""


class CountError(ModelError):
    """A formula asks for more than there are."""


class EmptyAtomError(ModelError):
    """A formula names a label without a category."""


class CombinationWeightError(ModelError):
    """The weight of a typical combination is negative or not finite."""


class DuplicateCombinationError(ModelError):
    """A typical combination is there twice."""


class IncompleteCombinationError(ModelError):
    """A typical combination leaves a label open."""


class ImpossibleError(PrslError):
    """Rules and evidence leave nothing possible."""


class TooCostlyError(PrslError):
    """Exact inference would take more than is allowed."""


class SettingError(PrslError):
    """A setting is out of its range."""


class NoStartError(PrslError):
    """No possible assignment was found to begin sampling with."""


class NoExplanationError(PrslError):
    """No possible explanation was found, nor a proof that there is none."""


class NothingToSimulateError(PrslError):
    """No model of this kind exists."""


class CalibratorError(PrslError):
    """A calibrator does not suit its label."""


class CalibrationError(LearningError):
    """No calibrator can be fitted to this."""


class ExamplesError(LearningError):
    """Nothing can be learned from these rows."""
