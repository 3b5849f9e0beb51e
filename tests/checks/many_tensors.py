"""many_tensors.py FOLDER: models of hundreds of trained tensors pass every pass for both targets; some are trained.
tests/checks/many_tensors.sh starts it.

    many_tensors.py FOLDER --full       every count of trained tensors from 480 to 520 and from 1,000 to 1,030"""
import copy
import sys

import harness
import tensor_models as many

SHORT = [496, 512, 1024]  # a kernel takes 512 ops, 496 of them beside movement
STEPS = 12


def check_plans(tally, folder, counts):
    for number, count in enumerate(counts):
        model = many.Model(number, count)
        tally.same(f"{model}: every pass", many.plan_differences(model, folder))


def check_training(tally, folder, number, count):
    model = many.Model(number, count)
    trained = many.Trained(model, folder, STEPS)
    tally.same(f"{model}: trains", many.training_differences(model, trained), f"loss {trained.losses}")
    still, name = copy.copy(trained), model.trained()[7]
    still.last = dict(trained.last, **{name: trained.first[name]})
    tally.seen("a tensor that was not trained", many.training_differences(model, still))
    still = copy.copy(trained)
    still.losses = trained.losses[:1] * STEPS
    tally.seen("a loss that does not fall", many.training_differences(model, still))


def plant(tally, folder):
    model = many.Model(0, 480)
    broken = copy.copy(model)
    broken.text = lambda: model.text().replace("cross_entropy(y_a, t)", "cross_entropy(y_b, t)")
    tally.seen("a model that does not compile", many.plan_differences(broken, folder))


def main():
    folder, full = sys.argv[1], "--full" in sys.argv
    tally = harness.Tally()
    tally.attempt(check_plans, folder, [*many.FEW, *many.MANY] if full else SHORT)
    tally.attempt(check_training, folder, 1, 500)
    tally.attempt(plant, folder)
    print(f"{tally.passed} passed, {tally.failed} failed")
    sys.exit(tally.failed > 0)


main()
