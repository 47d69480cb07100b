# %% [markdown]
# # Three classifiers and expert rules
#
# A camera recognizes the activity of a worker, a shoe sensor the feet, and a wrist sensor the hands. Each gives
# probabilities, and each is sometimes wrong. An expert provides three rules.

# %%
import numpy as np

import prsl
from prsl.rules import from_r

model = prsl.Model.parse("""
label activity: walking, normal, overhead from camera
label feet: gait, standing from shoe_sensor
label hands: high, centered, low from wrist_sensor

rule 0.8 overhead_work: high & standing -> overhead
rule 0.9 reach: normal -> centered | low
rule 1 gait_is_walking: walking <-> gait
""")
model

# %% [markdown]
# The beliefs of the classifiers at two moments, and the posterior:

# %%
beliefs = {
    "activity": np.array([[0.1, 0.4, 0.5], [0.6, 0.3, 0.1]]),
    "feet": np.array([[0.05, 0.95], [0.3, 0.7]]),
    "hands": np.array([[0.5, 0.3, 0.2], [0.1, 0.5, 0.4]]),
}
posterior = model.predict(beliefs, "both")
posterior

# %%
print(posterior["activity"].round(3))
print(posterior.assignments)
assert posterior.assignments[0] == {"activity": "overhead", "feet": "standing", "hands": "high"}
assert posterior["activity"][0, 2] > beliefs["activity"][0, 2]  # the rules agree with the camera and increase its probability

# %% [markdown]
# ## Rules from the authors' R code
#
# In that code, `A, B <- !C, D` means: if not C and D, then A or B. Several categories of one label are a disjunction.

# %%
ours = from_r("overhead, normal <- standing, !low")
print(ours)
longer = model.edit().rule(ours, 0.9, name="from_r").build()
assert longer.rules[-1].text == "overhead | normal <- standing & !low"

# %% [markdown]
# ## From scikit-learn
#
# `predict_proba` of any classifier is a belief. In arrays, no comes before yes, as class 0 before class 1. Here three classifiers see one noisy feature each. The rule that two labels
# are equal improves the predictions as much as more data would.

# %%
from sklearn.linear_model import LogisticRegression

rng = np.random.default_rng(0)
raining = rng.integers(0, 2, 600)
truth = {"rain": raining, "wet": raining, "sun": 1 - raining}
sensors = {name: (values + rng.normal(size=600))[:, None] for name, values in truth.items()}
classifiers = {name: LogisticRegression().fit(sensors[name][:300], values[:300]) for name, values in truth.items()}
said = {name: classifiers[name].predict_proba(sensors[name][300:]) for name in truth}

weather = prsl.Model.parse("label rain\nlabel wet\nlabel sun\nrule 0.95: rain <-> wet\nrule 0.95: rain <-> !sun")
after = weather.predict(said)
right_alone = np.mean((said["rain"][:, 1] > 0.5) == truth["rain"][300:])
right_together = np.mean((after["rain"][:, 1] > 0.5) == truth["rain"][300:])
print(f"right about rain: {right_alone:.2f} alone, {right_together:.2f} with the rules")
assert right_together > right_alone + 0.05
