import os

os.environ["KERAS_BACKEND"] = "torch"
import bayesflow as bf
import numpy as np
from ball import BUDGET, HIGH, LOW, report, throw_one


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

test = workflow.simulate(300)
figures = workflow.plot_default_diagnostics(test_data=test, num_samples=200)
for name, figure in figures.items():
    figure.savefig(f"bayesflow_{name}.png")
table = workflow.compute_default_diagnostics(test_data=test, num_samples=200)
print(table)
report(
    metrics={name: [round(float(v), 4) for v in row] for name, row in table.iterrows()},
    pictures=sorted(figures),
    calls=BUDGET + 300,
)
