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
stacker = RuleStacker(
    labels=["storm", "rain", "wet", "picnic"], rules=[(0.9, "rain -> wet")], max_iter=600, random_state=0
)
stacker.fit(beliefs[train], holes)
stacker.model_

# %%
alone = joint_accuracy(y[test], (beliefs[test] > 0.5).astype(float))
together = joint_accuracy(y[test], stacker.predict_mpe(beliefs[test]).astype(float))
print(f"all four labels right: {alone:.3f} alone, {together:.3f} with rules")
print(f"log-likelihood of validation rows: {stacker.learned_.beliefs_alone:.3f} as given, "
      f"{stacker.learned_.base_alone:.3f} calibrated, {stacker.learned_.validation:.3f} with rules")
assert together > alone + 0.05
assert stacker.learned_.validation > stacker.learned_.base_alone

# %% [markdown]
# The rules as sentences, by decreasing gain on the validation set:

# %%
for gain, rule in sorted(zip(stacker.learned_.gains, stacker.model_.rules), key=lambda pair: -pair[0])[:5]:
    print(f"{gain:.3f}  {rule.sentence}")

# %%
LearningCurveDisplay.from_estimator(stacker)
ReliabilityDisplay.from_estimator(stacker, beliefs[test], y[test].astype(int))

# %% [markdown]
# An expert can edit the file, and learning can continue from it.

# %%
stacker.model_.save("weather.prsl")
