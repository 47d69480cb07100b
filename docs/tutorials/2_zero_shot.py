# %% [markdown]
# # Zero-shot: a label without a trained classifier
#
# Strain is a label without a classifier and without annotated rows. Only rules define when it holds.

# %%
import numpy as np

import prsl

model = prsl.Model.parse("""
label activity: walking, normal, overhead
label hands: high, centered, low
label heavy

label strain: none, some, much latent prior 0.7, 0.2, 0.1
rule 0.9: overhead & heavy -> much
rule 0.8: overhead & !heavy -> some
rule 0.9: walking & !heavy -> none
rule 0.8: high -> some | much
""")

# %%
moments = {
    "activity": np.array([[0.05, 0.1, 0.85], [0.9, 0.05, 0.05]]),
    "hands": np.array([[0.8, 0.1, 0.1], [0.1, 0.2, 0.7]]),
    "heavy": np.array([0.9, 0.1]),
}
posterior = model.predict(moments)
print(posterior["strain"].round(2))
assert posterior["strain"][0].argmax() == 2 and posterior["strain"][1].argmax() == 0

# %% [markdown]
# Later a sensor for strain is added; nothing else changes. If the wrist sensor breaks, its label is left out of the
# beliefs.

# %%
plugged = model.edit().plug("strain", "back sensor").build()
with_sensor = plugged.predict(moments | {"strain": np.array([[0.2, 0.6, 0.2], [0.6, 0.3, 0.1]])})
without_wrist = model.predict({name: values for name, values in moments.items() if name != "hands"})
print(with_sensor["strain"].round(2))
print(without_wrist["strain"].round(2))
assert with_sensor["strain"][0, 1] > posterior["strain"][0, 1]
assert without_wrist["strain"][0, 2] < posterior["strain"][0, 2]  # with less evidence, the probability is less extreme
