"""wgmma.py [all]: machine code of the products by wgmma in bench/gpu/probe_kernels.py: no local memory, no more
registers than three warpgroups have, nothing that ptxas had to repair, and four HGMMA a step with no move to uniform
registers between them.  A line for each; without `all` one tile.  Needs what sass.py needs."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../bench/gpu"))
sys.dont_write_bytecode = True
import check_probe
import probe_kernels
from sass import Nvrtc, disassemble, kernels_of, used

MOST, A_STEP = 65536 // probe_kernels.THREADS // 8 * 8, 4


def cases(everything):
    """Arguments of probe_kernels.product: each tile with and without a residual, each order and type."""
    kinds = [("f16", columns, stages, (0, 0), False, residual)
             for columns, stages in check_probe.TILES for residual in (False, True)]
    for ask, _ in check_probe.same_cases():
        kinds.append((ask["same"], ask["columns"], ask["stages"], ask["down"], True, False))
    return kinds if everything else kinds[1:2]


def faults(lines, registers, stack, log):
    found = re.findall(r"C75\d\d|\d+ bytes spill|warning", log)
    instructions = [text for _, text in lines if text]
    at = [i for i, text in enumerate(instructions) if "HGMMA" in text]
    wrong = [f"{fault} in the log" for fault in found if fault != "0 bytes spill"]
    wrong += [f"{registers} registers"] if registers > MOST else []
    wrong += [f"{stack} bytes of local memory"] if stack else []
    wrong += [f"{len(at)} HGMMA"] if len(at) != A_STEP else []
    between = instructions[at[0]:at[-1]] if at else []
    return wrong + [f"{text} between HGMMA" for text in between if re.search("R2UR|DEPBAR", text)]


def main():
    nvrtc, failed = Nvrtc(), 0
    for case in cases(sys.argv[1:] == ["all"]):
        cubin, log = nvrtc.compile(probe_kernels.product(*case), "90a")
        registers, stack = used(log)["product"]
        lines = kernels_of(disassemble(cubin))["product"]
        wrong = faults(lines, registers, stack, log)
        kind, columns, stages, down, sums, residual = case
        form = "sums" if sums else "residual" if residual else "plain"
        what = f"{kind} 128x{columns} s{stages} {down[0]}{down[1]} {form}: {registers} registers"
        print(f"FAIL {what}: {'; '.join(wrong)}" if wrong else f"ok {what}")
        planted = faults(lines + lines, MOST + 1, 8, log + " C7519")
        failed += bool(wrong) + (len(planted) < 4)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
