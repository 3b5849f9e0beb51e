"""scaler.py: the loss scale and its growth tracker against torch._amp_update_scale_, bit for bit, over random sequences of steps that
are finite or not; what a skipped step leaves alone; and the floor that PyTorch does not have."""
import os
import random
import struct

import torch

import ampc_tools as tools
import harness

SEQUENCES, LONG_SEQUENCES = 10_000, 100_000
LENGTHS = (5, 40)           # steps of a random sequence
DIVE = 200                  # steps of a sequence that goes through the subnormal scales down to 0 in PyTorch
LEAST, MOST = 2.0 ** -126, 2.0 ** 126   # scales that a step can use; here they end there
AT_FLOOR = 10               # AMP_SCALE_AT_FLOOR
# (growth, backoff, interval)
SETTINGS = [(2.0, 0.5, 1), (2.0, 0.5, 2), (2.0, 0.5, 3), (2.0, 0.5, 7), (2.0, 0.5, 50), (2.0, 0.5, 333), (2.0, 0.5, 2000),
            (1.5, 0.75, 3), (4.0, 0.125, 2), (1.001, 0.9, 1), (3.0, 0.3, 50)]


def float_bits(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def bits_float(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


# ---- sequences ----------------------------------------------------------------------------------------------------------------


def random_sequences(count, interval, seed):
    """(scale bits, tracker, pattern): scales of 2^-20 to 2^120, trackers close below the interval, more finite steps than others."""
    draw = random.Random(seed)
    for _ in range(count):
        scale = 2.0 ** draw.uniform(-20, 120) if draw.random() < 0.5 else 2.0 ** draw.randint(-20, 120)
        tracker = draw.randint(max(0, interval - 30), interval - 1)
        rate = draw.choice((0.02, 0.2, 0.6))
        yield float_bits(scale), tracker, "".join("01"[draw.random() < rate] for _ in range(draw.randint(*LENGTHS)))


def dives(interval):
    """Down to the least scale and up to the greatest; PyTorch's would go on to 0, where it stays for ever, and to the largest float."""
    yield float_bits(2.0 ** -20), 0, "1" * DIVE + "0" * 5
    yield float_bits(2.0 ** 120), interval - 1, "0" * 40


# ---- both sides ---------------------------------------------------------------------------------------------------------------


def drive(model, sequences):
    """What scaler_driver answers: one list of (scale bits, tracker, skipped, kept, status) per sequence."""
    text = "".join(f"{scale:08x} {tracker} {pattern}\n" for scale, tracker, pattern in sequences)
    lines = iter(tools.run(tools.program("tests/parity/scaler_driver"), model, stdin=text).splitlines())
    return [[(int(scale, 16), *map(int, rest)) for scale, *rest in (next(lines).split() for _ in pattern)]
            for _, _, pattern in sequences]


def torch_sequence(scale_bits, tracker, pattern, growth, backoff, interval):
    scale = torch.tensor(bits_float(scale_bits), dtype=torch.float32)
    tracker = torch.tensor(tracker, dtype=torch.int32)
    found = {"0": torch.tensor(0.0), "1": torch.tensor(1.0)}
    hits = 0
    for step in pattern:
        hits += step == "1" and scale.item() <= LEAST
        torch._amp_update_scale_(scale, tracker, found[step], growth, backoff, interval)
        scale.clamp_(LEAST, MOST)
        yield float_bits(scale.item()), tracker.item(), AT_FLOOR if hits else 0


def differences(sequences, answers, setting):
    """Where a step differs from PyTorch's, or a step was skipped that is finite, or a skipped one left a trace."""
    for number, ((scale, tracker, pattern), answer) in enumerate(zip(sequences, answers)):
        theirs = torch_sequence(scale, tracker, pattern, *setting)
        for at, (want, (got_scale, got_tracker, skipped, kept, status)) in enumerate(zip(theirs, answer)):
            where = f"sequence {number} (scale {bits_float(scale):g}, tracker {tracker}) step {at}"
            if (got_scale, got_tracker) != want[:2]:
                yield (f"{where}: scale {bits_float(got_scale):g} tracker {got_tracker}, "
                       f"PyTorch {bits_float(want[0]):g} {want[1]}")
                break
            if skipped != int(pattern[at]) or kept != skipped or status != want[2]:
                yield f"{where}: skipped {skipped} (wanted {pattern[at]}), state kept {kept}, status {status}, wanted {want[2]}"
                break


def compile_scaler(options, name, *terms):
    path = os.path.join(options.work, name)
    model = tools.variant(os.path.join(tools.MODELS, "scaler.amp"), path + ".amp", loss_scale=f"dynamic({', '.join(terms)})")
    return tools.compile_model(model, path + ".so", "--policy", "torch-fp16")


def number(x):
    """A float of the language has digits on both sides of its dot."""
    return repr(float(x))


def run_setting(options, setting, count):
    growth, backoff, interval = setting
    model = compile_scaler(options, f"scaler_{growth}_{backoff}_{interval}", "init = 65536.0", f"growth = {number(growth)}",
                           f"backoff = {number(backoff)}", f"interval = {interval}", "min = 1.1754944e-38", "max = inf")
    sequences = list(random_sequences(count, interval, seed=SETTINGS.index(setting))) + list(dives(interval))
    return sequences, drive(model, sequences)


# ---- checks -------------------------------------------------------------------------------------------------------------------


def check_against_torch(tally, options):
    total = LONG_SEQUENCES if options.long else SEQUENCES
    for setting in SETTINGS:
        sequences, answers = run_setting(options, setting, -(-total // len(SETTINGS)))
        growth, backoff, interval = setting
        tally.same(f"scale and tracker as PyTorch's, growth {growth}, backoff {backoff}, interval {interval}",
                   differences(sequences, answers, setting), f"{len(sequences)} sequences, {sum(map(len, answers))} steps")


def floor_differences(answer):
    """The scale stops at 1, and from the first skip there on every step says so, a finite one too."""
    wanted_scales = [2.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    wanted_status = [0, 0, AT_FLOOR, AT_FLOOR, AT_FLOOR, AT_FLOOR]
    for at, (scale, _, _, _, status) in enumerate(answer):
        if (bits_float(scale), status) != (wanted_scales[at], wanted_status[at]):
            yield f"step {at}: scale {bits_float(scale):g} status {status}, wanted {wanted_scales[at]:g} {wanted_status[at]}"


def check_floor(tally, options):
    model = compile_scaler(options, "floor", "init = 65536.0")
    answer, after = drive(model, [(float_bits(4.0), 0, "111100"), (float_bits(4.0), 0, "0")])
    tally.same("default floor: scale stays at 1, status is sticky", floor_differences(answer))
    tally.same("setting the scaler clears the status", [] if after[0][4] == 0 else [f"status {after[0][4]}"])


def check_ceiling(tally, options):
    model = compile_scaler(options, "ceiling", "init = 65536.0", "interval = 1")
    answer, = drive(model, [(float_bits(2.0 ** 23), 0, "000")])
    scales = [bits_float(step[0]) for step in answer]
    tally.same("default ceiling: scale stays at 2^24", [] if scales == [2.0 ** 24] * 3 else [f"scales {scales}"])


def plant(tally, options):
    setting = SETTINGS[0]
    sequences, answers = run_setting(options, setting, 20)

    def with_step(change):
        planted = [list(answer) for answer in answers]
        planted[7][3] = change(*planted[7][3])
        return differences(sequences, planted, setting)

    tally.seen("one scale off by its lowest bit", with_step(lambda scale, *rest: (scale ^ 1, *rest)))
    tally.seen("one tracker off by one", with_step(lambda scale, tracker, *rest: (scale, tracker + 1, *rest)))
    tally.seen("a step skipped or not against its gradients",
               with_step(lambda scale, tracker, skipped, kept, status: (scale, tracker, 1 - skipped, kept, status)))
    tally.seen("a skipped step that left a trace (or an applied one that left none)",
               with_step(lambda scale, tracker, skipped, kept, status: (scale, tracker, skipped, 1 - kept, status)))
    tally.seen("a floor that is not reported", floor_differences([(float_bits(s), 0, 1, 1, 0) for s in (2.0, 1.0, 1.0)]))


if __name__ == "__main__":
    harness.main(__doc__, [check_against_torch, check_floor, check_ceiling], [plant])
