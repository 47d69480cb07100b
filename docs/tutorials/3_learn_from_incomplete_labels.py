# %% [markdown]
# # Learning rules from incomplete labels
#
# Four classifiers of labels that depend on each other. 30 % of the truths are unknown, and there is one expert rule.

# %%
import numpy as np

from prsl import RuleStacker
from prsl.displays import LearningCurveDisplay, ReliabilityDisplay
from prsl.metrics import joint_accuracy

rng = np.random.default_rng(3)
n = 1500
storm = rng.random(n) < 0.3
rain = np.where(storm, rng.random(n) < 0.9, rng.random(n) < 0.3)
wet = np.where(rain, rng.random(n) < 0.95, rng.random(n) < 0.05)
picnic = ~rain & ~storm & (rng.random(n) < 0.6)
y = np.column_stack([storm, rain, wet, picnic]).astype(float)
# Classifiers that are mostly right, but overconfident.
odds = 1.6 * (y - 0.5) + rng.normal(size=y.shape)
beliefs = 1 / (1 + np.exp(-2 * odds))

train, test = slice(0, 1000), slice(1000, None)
holes = y[train].copy()
holes[rng.random(holes.shape) < 0.3] = np.nan

# %%
stacker = RuleStacker(labels=["storm", "rain", "wet", "picnic"], rules=[(0.9, "rain -> wet")], random_state=0)
stacker.fit(beliefs[train], holes, validation=(beliefs[test], y[test]))
stacker.model_

# %%
alone = joint_accuracy(y[test], (beliefs[test] > 0.5).astype(float))
together = joint_accuracy(y[test], stacker.predict_mpe(beliefs[test]).astype(float))
print(f"all four labels right: {alone:.3f} alone, {together:.3f} with rules")
learned = stacker.learned_
print(f"log-likelihood of training rows: {learned.beliefs_alone:.3f} as given, "
      f"{learned.base_alone:.3f} calibrated, {learned.log_likelihood:.3f} with rules")
print(f"log-likelihood of test rows: {learned.validation:.3f}")
assert together > alone + 0.05
assert learned.log_likelihood > learned.base_alone

# %% [markdown]
# Learning adds the rule with the largest gain, refits all parameters, and goes on until no rule gains more than its price.

# %%
for addition in learned.path:
    print(f"{', '.join(addition.rules)}: gain {addition.gain:.1f}, price {addition.price:.1f} nats")
    print("  next:", ", ".join(f"{rule} ({gain:.1f})" for rule, gain in addition.runners_up))

# %% [markdown]
# Every learned rule has a note about its evidence in the training rows. The gain is the log-likelihood that is lost
# without the rule. A rule is broken by fewer rows than the model without it expects. If it is not sure, it may be due to
# chance; `parsimony="explain"` adds only sure rules.

# %%
for rule in stacker.model_.rules:
    note = rule.learned
    if note is None:
        print(f"{rule.sentence}: from the expert")
    else:
        print(f"{rule.sentence}: gain {note.gain:.1f} nats, {'sure' if note.sure else 'not sure'}")
assert learned.gains[0] is None and any(rule.learned and rule.learned.sure for rule in stacker.model_.rules)

# %%
LearningCurveDisplay.from_estimator(stacker)
ReliabilityDisplay.from_estimator(stacker, beliefs[test], y[test].astype(int))

# %% [markdown]
# The file has the notes as comments. An expert can edit it, and learning can continue from it.

# %%
stacker.model_.save("weather.prsl")
print(stacker.model_)
