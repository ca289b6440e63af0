import matplotlib.pyplot as plt
import pyabc
from ball import BUDGET, HIGH, LOW, X_O, report, throw_one

prior = pyabc.Distribution(
    speed=pyabc.RV("uniform", LOW[0], HIGH[0] - LOW[0]),
    angle=pyabc.RV("uniform", LOW[1], HIGH[1] - LOW[1]),
)
abc = pyabc.ABCSMC(
    models=lambda p: {"x": throw_one([p["speed"], p["angle"]])},
    parameter_priors=prior,
    distance_function=pyabc.AdaptivePNormDistance(p=2),
    population_size=300,
    sampler=pyabc.sampler.SingleCoreSampler(),
)
abc.new(pyabc.create_sqlite_db_id(file_="pyabc.db"), {"x": X_O})
history = abc.run(max_total_nr_simulations=BUDGET)
particles, weights = history.get_distribution()
pyabc.visualization.plot_kde_matrix(particles, weights)
plt.savefig("pyabc.png")
draws = particles.sample(2_000, replace=True, weights=weights, random_state=0)
report(draws[["speed", "angle"]], int(history.total_nr_simulations))
