# %% [markdown]
# # A taxonomy
#
# Labels in a tree: a child implies its parent, and exactly one leaf of a group holds.

# %%
import numpy as np

import prsl

tree = {"vehicle": ["car", "truck", "bicycle"], "animal": ["cat", "dog"]}

builder = prsl.Model.builder()
for parent, children in tree.items():
    builder.label(parent)
    for child in children:
        builder.label(child)
for parent, children in tree.items():
    for child in children:
        builder.rule(f"{child} -> {parent}", 1)
    builder.rule(f"{parent} -> {' | '.join(children)}", 0.95)
builder.rule("exactly 1 of {car, truck, bicycle, cat, dog}", 0.99)
model = builder.build()
print(model)
assert not [finding for finding in model.check() if finding.severity == "error"]

# %% [markdown]
# One independent classifier per node. They are certain that it is a vehicle, but not which one.

# %%
beliefs = {
    "vehicle": [0.9],
    "car": [0.45],
    "truck": [0.5],
    "bicycle": [0.2],
    "animal": [0.3],
    "cat": [0.4],
    "dog": [0.1],
}
posterior = model.predict(beliefs, "both")
for label in posterior:
    print(f"{label:8} {beliefs[label][0]:.2f} -> {posterior[label][0, 1]:.2f}")
best = posterior.assignments[0]
print([label for label, category in best.items() if category == "yes"])
assert best["vehicle"] == "yes" and best["truck"] == "yes" and best["cat"] == "no"
for parent, children in tree.items():
    for child in children:
        assert posterior[child][0, 1] <= posterior[parent][0, 1] + 1e-12  # no child without its parent

# %% [markdown]
# Many rows at once, with some nodes missing: the rules infer them from the others.

# %%
rng = np.random.default_rng(1)
many = {label: rng.random(1000) for label in beliefs}
many["animal"][::2] = np.nan
after = model.predict(many)
assert not np.isnan(after["animal"]).any() and (after.status == "ok").all()
