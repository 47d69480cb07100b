# %% [markdown]
# # Explain a prediction
#
# An explanation shows which rule changed which label, and which rules conflict with the evidence.

# %%
import prsl
from prsl.displays import InfluenceDisplay

model = prsl.Model.parse("""
label activity: walking, normal, overhead
label feet: gait, standing
label hands: high, centered, low

rule 0.8 overhead_work: high & standing -> overhead
rule 0.9 reach: normal -> centered | low
rule 1 gait_is_walking: walking <-> gait
""")
row = {"activity": [[0.7, 0.2, 0.1]], "feet": [[0.1, 0.9]], "hands": [[0.8, 0.1, 0.1]]}
explanation = model.explain(row)
explanation

# %%
print(explanation)
assert explanation.possible and explanation.best is not None

# %% [markdown]
# The camera is certain of walking, the shoe sensor of standing. The hard rule contradicts one of them.

# %%
for rule in explanation.rules:
    print(f"{rule['name']}: agreement {rule['agreement']:.3f}{', conflict' if rule['conflict'] else ''}")
assert [rule["name"] for rule in explanation.conflicts] == ["gait_is_walking"]
InfluenceDisplay.from_predictions(explanation)

# %% [markdown]
# For impossible evidence, the explanation gives a minimal set of rules that exclude it.

# %%
impossible = model.explain({"activity": ["walking"], "feet": ["standing"]})
print([rule["text"] for rule in impossible.conflicts])
assert not impossible.possible

# %% [markdown]
# **What would change the answer?** Counterfactuals list the smallest change of each label that makes a category the most
# probable one. Each change suffices alone. Its distance is the total variation of the belief.

# %%
found = model.counterfactuals(row, "activity", "walking")
print(found)
assert not found.already and found.changes[0]["label"] == "feet"

# %% [markdown]
# **What should be asked next?** The expected information gain is in bits. Without a label, it is about all labels.

# %%
gains = model.information_gains(row, "activity")
print(gains)
assert gains.gains[0]["label"] == "feet"
