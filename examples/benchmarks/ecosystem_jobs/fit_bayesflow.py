import os

os.environ["KERAS_BACKEND"] = "torch"
import bayesflow as bf
import numpy as np
from ball import BUDGET, HIGH, LOW, X_O, report, throw_one


def prior():
    return {
        "speed": np.random.uniform(LOW[0], HIGH[0]),
        "angle": np.random.uniform(LOW[1], HIGH[1]),
    }


def likelihood(speed, angle):
    return {"x": throw_one([speed, angle])}


adapter = (
    bf.Adapter()
    .convert_dtype("float64", "float32")
    .constrain("speed", lower=LOW[0], upper=HIGH[0])
    .constrain("angle", lower=LOW[1], upper=HIGH[1])
    .concatenate(["speed", "angle"], into="inference_variables")
    .rename("x", "inference_conditions")
)
workflow = bf.BasicWorkflow(
    simulator=bf.make_simulator([prior, likelihood]),
    adapter=adapter,
    inference_network=bf.networks.CouplingFlow(),
    standardize="all",
)
workflow.fit_offline(workflow.simulate(BUDGET), epochs=100, batch_size=128, verbose=0)
draws = workflow.sample(conditions={"x": X_O[None]}, num_samples=2_000)
figure = bf.diagnostics.pairs_posterior(draws, dataset_id=0)
figure.savefig("bayesflow.png")
report(np.concatenate([draws["speed"], draws["angle"]], axis=-1)[0])
