"""sass.py: machine code of products and attention: what NVRTC makes of a file of CUDA C, without a GPU.

    sass.py FILE.cu WORD ARCH...        ARCH: 80, 90, ...
    sass.py --fences FILE.cu ARCH...    only kernels whose blocks wait for one another, and their fences
    sass.py                             fails if there is no NVRTC

For each kernel that uses tensor cores and reads as WORD says ('': any), and each architecture, a line: instructions of
its main loop (the innermost loop that has the most HMMA, of attention the densest) for each HMMA, registers, bytes of
the stack, and accesses of 16 bytes; for each product of a launch of two. Fails if a kernel is above its limit, uses
local memory, or moves less at once; if a fence of the device is fence.sc or of more than one thread of a block; and if
it does not see such faults, planted in what is right (unseen). For each such kernel whose epilogue reads a matrix, a
line: how many of its loads are on their way at once; fails if they are too few, or if it prefetches before it waits for
earlier launches. Needs libnvrtc on the loader's path and nvdisasm on PATH."""
import ctypes
import glob
import os
import re
import subprocess
import sys
import tempfile

# By the tile of a block, bytes of k in a step, and how an operand is read: instructions for each HMMA.
# The aim is 2.5 for all (docs/design/plan.md); these are what is reached, and a little.
LIMITS = {("128x128", 64, "dense"): 2.2, ("64x64", 128, "dense"): 2.5, ("64x64", 64, "dense"): 3.0,
          ("64x16", 128, "dense"): 4.4, ("128x128", 64, "down"): 2.2, ("64x64", 128, "down"): 2.6,
          ("128x128", 64, "rounded"): 3.8, ("64x64", 128, "rounded"): 5.4, ("64x64", 128, "rounded down"): 5.8,
          ("128x128", 64, "rounded down"): 4.2,
          ("128x128", 64, "windows"): 3.4, ("64x64", 128, "windows"): 3.6, ("64x64", 64, "windows"): 6.3,
          ("128x128", 64, "windows down"): 3.6, ("64x64", 128, "windows down"): 4.0, ("64x64", 64, "windows down"): 4.4,
          ("64x64", 64, "elements"): 6.4}
# Of attention by the width of a head; edges of a mask are in the loop, and count.
LIMITS.update({("forward", 64, "attention"): 7.6, ("gradient", 64, "attention"): 5.4,
               ("forward", 128, "attention"): 6.2, ("gradient", 128, "attention"): 5.4,
               ("forward", 64, "attention, mask"): 7.2, ("forward", 64, "attention, mask, dropout"): 15.3,
               ("gradient", 64, "attention, mask, dropout"): 5.6})
LATER = {"120": 1.2}  # what NVRTC makes of the same for these
WIDE = 0.9  # of a product's accesses of global memory are 16 bytes wide
NARROW_STORES = 4  # of attention: numbers of its queries
AHEAD = 4  # loads of an epilogue that are made before the first of them is used
OF_HALF = 4.4  # where half of a tile is past the edge, and its HMMA are left out


def find_nvrtc():
    """Where tests find it: NVRTC_PATH, .nvrtc of tools/setup, a toolkit, the loader's path; OSError."""
    places = [os.environ.get("NVRTC_PATH"), ".nvrtc", "/usr/local/cuda/lib64", "/usr/local/cuda/lib"]
    for place in filter(None, places):
        for path in sorted(glob.glob(os.path.join(place, "**", "libnvrtc.so.1[23]"), recursive=True)):
            return ctypes.CDLL(path)
    return ctypes.CDLL("libnvrtc.so.13")


class Nvrtc:
    def __init__(self):
        self.library = find_nvrtc()

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name}: {status}")

    def text(self, program, size_of, get):
        size = ctypes.c_size_t()
        self.call(size_of, program, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        self.call(get, program, data)
        return data.raw

    def compile(self, source, arch, *further):
        """(cubin, what ptxas says)"""
        program = ctypes.c_void_p()
        self.call("nvrtcCreateProgram", ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
        options = [f"--gpu-architecture=sm_{arch}".encode(), b"--fmad=false", b"--ptxas-options=-v", *further]
        self.call("nvrtcCompileProgram", program, len(options), (ctypes.c_char_p * len(options))(*options))
        log = self.text(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog").decode(errors="replace")
        cubin = self.text(program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN")
        self.call("nvrtcDestroyProgram", ctypes.byref(program))
        return cubin, log


def used(log):
    """{kernel: (registers, bytes of its stack)}"""
    found, kernel, stack = {}, None, 0
    for line in log.splitlines():
        if name := re.search(r"Compiling entry function '(\w+)'", line):
            kernel, stack = name.group(1), 0
        if frame := re.search(r"(\d+) bytes stack frame", line):
            stack = int(frame.group(1))
        if kernel and (registers := re.search(r"Used (\d+) registers", line)):
            found[kernel] = int(registers.group(1)), stack
    return found


def disassemble(cubin):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return subprocess.run(["nvdisasm", "-c", file.name], capture_output=True, text=True, check=True).stdout


def kernels_of(sass):
    """{kernel: [(label or None, instruction or None)]}"""
    found = {}
    for part in re.split(r"\n\s*\.section\s+\.text\.", sass)[1:]:
        lines = []
        for line in part.splitlines():
            if label := re.match(r"\s*(\.L_x_\d+):", line):
                lines.append((label.group(1), None))
            elif instruction := re.search(r"/\*[0-9a-f]{4,}\*/\s+(.*?);", line):
                lines.append((None, instruction.group(1).strip()))
        found[re.match(r"\w+", part).group()] = lines
    return found


def loops_of(lines):
    """The instructions of each loop with HMMA, between a label and the branch back to it, in their order."""
    labels = {label: at for at, (label, _) in enumerate(lines) if label}
    loops = []
    for at, (_, instruction) in enumerate(lines):
        target = instruction and re.search(r"\bBRA\b.*`\((\.L_x_\d+)\)", instruction)
        if target and labels.get(target.group(1), at) < at:
            body = [text for _, text in lines[labels[target.group(1)]:at + 1] if text]
            if count_hmma(body):
                loops.append(body)
    return loops


def functions_of(source):
    """{kernel: its text}"""
    kernels = re.findall(r'\nextern "C" __global__ (.*?\n)\}\n', source, re.S)
    return {re.search(r"(\w+)\(", re.sub(r"__launch_bounds__\([^)]*\)", "", kernel)).group(1): kernel
            for kernel in kernels}


def alone(source, names):
    """The source without the kernels that are not in |names|: NVRTC takes its time for each."""
    for name, kernel in functions_of(source).items():
        if name not in names:
            source = source.replace(f'\nextern "C" __global__ {kernel}}}\n', "\n")
    return source


def pointers_of(source):
    """{kernel: what a launch of several products reads of where their operands are}"""
    return {name: len(re.findall(r"\boperand\[\d+\]", kernel)) for name, kernel in functions_of(source).items()}


def count_hmma(body):
    return sum("HMMA" in text for text in body)


def main_loop(loops, densest=False):
    """The shortest with the most HMMA, or that with the most for each instruction; none: []."""
    return max(loops, default=[],
               key=lambda body: (count_hmma(body) / len(body) if densest else count_hmma(body), -len(body)))


def loops_of_parts(lines, tiles, arch):
    """The main loop of each product of a launch.  Their code is in either order, and where one ends is not said: as
    they fit their tiles best."""
    loops = loops_of(lines)
    if len(tiles) == 1:
        return [main_loop(loops, tiles[0][2].startswith("attention"))]
    def worst(way):
        return max(excess(loop, tile, arch) for loop, tile in zip(way, tiles))

    def best(cuts):
        ways = [(main_loop(loops[:cut]), main_loop(loops[cut:])) for cut in cuts]
        return min(ways + [way[::-1] for way in ways], key=worst, default=None)
    both = best(range(1, len(loops)))
    return both if both and worst(both) <= 1 else best([0])  # a short k has no loop


def reading_of(kernel):
    operands = re.findall(r"typedef TensorOperand<(.*)> [AB];", kernel)
    bytes_at_once = [int(operand.split(", ")[-2]) for operand in operands]
    down = all(operand.split(", ")[-5] == "false" for operand in operands)  # k runs down the lines of both
    if "Rounded" in "".join(operands):
        return "rounded down" if down else "rounded"
    if min(bytes_at_once) < 16:
        return "elements"  # fewer than 16 bytes lie side by side
    windows = re.match("Windows|Images", operands[0]) is not None
    return ("windows down" if windows else "down") if down else "windows" if windows else "dense"


def tile_of(text):
    """(tile, bytes of k in a step, how an operand is read, HMMA of a step); of attention (way, width of a head,
    "attention" and what is done to its scores, 1); of others None."""
    sums = re.search(r"typedef TensorSums<\w+, (\d+), (\d+), (\d+), (\d+), (\d+)> Sums;", text)
    attention = re.search(r"typedef AttentionShape<\w+, \d+, \d+, (\d+)", text)
    if attention:
        rule = re.search(r"typedef ScoreRule<Shape, (\w+), (\w+)>", text)
        reading = "attention" + (", mask" if rule.group(1) != "MASK_NONE" else "") + (
            ", dropout" if rule.group(2) == "true" else "")
        return "forward" if "AttentionForward<" in text else "gradient", int(attention.group(1)), reading, 1
    if not sums:
        return None
    m, n, warps_m, warps_n, step_bytes = map(int, sums.groups())
    a_step = m * n * (step_bytes // 2) // (16 * 8 * 16) // (warps_m * warps_n)  # HMMA of a warp
    return f"{m}x{n}", step_bytes, reading_of(text), a_step


def by_part(source, find):
    """{kernel: [what |find| says, if it is anything]}: of the kernel's text, or of each part of a launch."""
    found = {}
    parts = re.findall(r"\nstruct (\w+)_part\d+ \{\n(.*?)\n\};\n", source, re.S)
    for name, kernel in functions_of(source).items():
        texts = [text for of, text in parts if of == name] or [kernel]
        if said := list(filter(None, map(find, texts))):
            found[name] = said
    return found


def global_accesses(code, pointers):
    """(how many are 16 bytes wide, how many there are) besides those that read |pointers|, and counts of look.cuh"""
    found = [text for _, text in code if text and re.search(r"\b(LDG|STG|LDGSTS)\.", text) and ".STRONG" not in text]
    words = sum(bool(re.search(r"\bLDG\.E\.64\b", text)) for text in found)
    return sum(".128" in text for text in found), len(found) - min(pointers, words)


def fences_of(code):
    """(fences of the device, how many of them are fence.sc or not of one thread): one thread's are executed under a
    predicate, or what comes after the barrier before them goes around them."""
    places = {label: at for at, (label, _) in enumerate(code) if label}
    ends, fences, wrong = [], 0, 0  # where the branches since the last barrier go to
    for at, (_, text) in enumerate(code):
        if not text:
            continue
        if re.match(r"BAR\b|EXIT", text):
            ends = []
        elif away := re.match(r"@!?U?P\d (?:EXIT|BRA.*`\((\.L_x_\d+)\))", text):
            ends.append(places.get(away.group(1), len(code)))
        elif "MEMBAR" in text:
            fences += 1
            wrong += ".SC" in text or not (text.startswith("@") or any(end > at for end in ends))
    return fences, wrong


FENCES_OF_ALL = {"a fence of all threads": [(None, "BAR.SYNC 0x0"), (None, "MEMBAR.ALL.GPU")],
                 "a fence.sc": [(None, "@P0 MEMBAR.SC.GPU")]}


def check_fences(name, arch, code):
    fences, wrong = fences_of(code)
    said = f"{name} sm_{arch}: {fences} fences, {wrong} of them fence.sc or of more than one thread"
    return f"ok {said}" if fences and not wrong else f"FAIL {said}"


def with_fences(source):
    """Without the kernels whose blocks do not order one another."""
    orders = r"\b(takes_last_ticket|waits_for_(turns|parts)|ends_(turn|part))\("
    return re.sub(r'\nextern "C" __global__ .*?\n\}\n',
                  lambda kernel: kernel.group() if re.search(orders, kernel.group()) else "\n", source, flags=re.S)


def needed_loads(text):
    """Of a product's text: loads of a matrix that its epilogue makes together; none: 0."""
    sums = re.search(r"typedef TensorSums<\w+, (\d+), (\d+), (\d+), (\d+), \d+> Sums;", text)
    width = re.search(r"typedef Sums::Runs<(\d+),", text)
    if not sums or not re.search(r"\ball\d+\[TOGETHER \* PARTS\]", text):
        return 0
    m, n, warps_m, warps_n = map(int, sums.groups())
    rows = min(32, m // warps_m)  # of a warp, in one pass
    return min(AHEAD, rows * (n // warps_n // int(width.group(1))) // 32)


def epilogues_of(code):
    """The instructions between HMMA, up to the last store."""
    parts = [[]]
    for text in (text for _, text in code if text):
        if "HMMA" in text:
            parts.append([])
        parts[-1].append(text)
    ends = [max((at for at, text in enumerate(part) if re.search(r"\bSTG\.", text)), default=0) for part in parts]
    return [part[:end] for part, end in zip(parts, ends) if end]


def on_their_way(part):
    """The most loads that no instruction has waited for yet."""
    most, waits = 0, []  # the registers of each
    for text in part:
        names = re.search(r"\bLDG\.\S* R(\d+), (.*)", text)
        used = {int(number) for number in re.findall(r"\bR(\d+)", names.group(2) if names else text)}
        waits = [registers for registers in waits if not registers & used]
        if names and ".STRONG" not in text:
            count = 4 if ".128" in text else 2 if ".64 " in text.split(",")[0] else 1
            waits.append(set(range(int(names.group(1)), int(names.group(1)) + count)))
            most = max(most, len(waits))
    return most


def check_epilogues(name, arch, needed, code):
    """|needed|: of each product of the launch that reads a matrix."""
    found = sorted(map(on_their_way, epilogues_of(code)), reverse=True)
    texts = [text for _, text in code if text]
    wait = next((at for at, text in enumerate(texts) if "ACQBULK" in text), 0)
    early = sum("CCTL.E.PF2" in text for text in texts[:wait])
    verdict = "ok" if not early and len(found) >= len(needed) and all(
        least <= loads for least, loads in zip(sorted(needed, reverse=True), found)) else "FAIL"
    return (f"{verdict} {name} sm_{arch}: epilogues: {', '.join(map(str, found))} loads on their way "
            f"(at least {', '.join(map(str, sorted(needed, reverse=True)))}), {early} prefetches before the wait")


def unseen_in_epilogues(name, arch, needed, code):
    """Which faults check_epilogues does not find, planted in what is right."""
    waiting = []
    for label, text in code:
        waiting.append((label, text))
        if load := re.search(r"\bLDG\.\S* (R\d+),", text or ""):
            waiting.append((None, f"MOV R0, {load.group(1)}"))
    faults = {"loads that wait for one another": waiting}
    if any(text and "ACQBULK" in text for _, text in code):
        faults["a prefetch before the wait"] = [(None, "CCTL.E.PF2 [R2]")] + code
    return [fault for fault, lines in faults.items()
            if not check_epilogues(name, arch, needed, lines).startswith("FAIL")]


def limit_of(loop, tile, arch):
    shape, step_bytes, reading, a_step = tile
    return (OF_HALF if count_hmma(loop) % a_step else LIMITS[shape, step_bytes, reading]) * LATER.get(arch, 1)


def excess(loop, tile, arch):
    return len(loop) / count_hmma(loop) / limit_of(loop, tile, arch) if loop else 0


def check(name, arch, tile, loop, code, use, pointers):
    shape, step_bytes, reading, _ = tile
    registers, stack = use
    count = count_hmma(loop)
    wide, accesses = global_accesses(code, pointers)
    local = sum(bool(re.search(r"\b(LDL|STL)\b", text)) for _, text in code if text)
    if not count:
        found = sum("HMMA" in text for _, text in code if text)
        verdict = "ok" if found and not local and not stack and not fences_of(code)[1] else "FAIL"
        return f"{verdict} {name} sm_{arch}: {shape}, no loop, {found} HMMA"
    limit = limit_of(loop, tile, arch)
    size = f"heads of {step_bytes}" if reading.startswith("attention") else f"by {step_bytes} bytes"
    said = (f"{name} sm_{arch}: {shape} {size}, {reading}: {len(loop) / count:.2f} "
            f"instructions for each HMMA (limit {limit:.1f}), {registers} registers, {stack} bytes of stack, "
            f"{wide} of {accesses} accesses of global memory 16 bytes wide")
    stores = sum(bool(re.search(r"\bSTG\.", text)) and ".128" not in text for _, text in code if text)
    if reading.startswith("attention"):
        narrow = stores > NARROW_STORES
    else:
        narrow = reading != "elements" and wide < WIDE * accesses
    slow = len(loop) / count > limit or fences_of(code)[1]
    return f"FAIL {said}" if slow or local or stack or narrow else f"ok {said}"


def unseen(name, arch, tile, loop, code, use, pointers):
    """Which faults check does not find, planted in what is right."""
    registers, stack = use
    wide, accesses = global_accesses(code, pointers)
    faults = {"local memory": (loop, code + [(None, "STL [R1], R2")], use),
              "a stack": (loop, code, (registers, stack + 8))}
    faults.update({fault: (loop, code + lines, use) for fault, lines in FENCES_OF_ALL.items()})
    if loop:
        most = int(limit_of(loop, tile, arch) * count_hmma(loop))
        faults["an instruction too many"] = loop + ["NOP"] * (most + 1 - len(loop)), code, use
    if loop and tile[2] != "elements" and not tile[2].startswith("attention"):
        narrow = int(wide / WIDE) + 1 - accesses
        faults["a narrow access too many"] = loop, code + [(None, "LDG.E R2, [R4]")] * narrow, use
    return [fault for fault, (body, lines, used_by) in faults.items()
            if not check(name, arch, tile, body, lines, used_by, pointers).startswith("FAIL")]


def look_at(nvrtc, source, arch):
    """What used and kernels_of say; of what uses the stack, as ampc compiles it then (AMP_NVRTC_LEAN)."""
    def look(*options):
        cubin, log = nvrtc.compile(source, arch, *options)
        return used(log), kernels_of(disassemble(cubin))
    uses, code = look()
    spilling = [name for name, (_, stack) in uses.items() if stack]
    if spilling:
        lean_uses, lean_code = look(b"--define-macro=LEAN=1")
        for name in spilling:
            uses[name], code[name] = lean_uses[name], lean_code[name]
    return uses, code


def look_at_fences(path, archs):
    with open(path, encoding="utf-8") as file:
        source = with_fences(file.read())
    nvrtc, failed = Nvrtc(), 0
    for arch in archs:
        for name, code in look_at(nvrtc, source, arch)[1].items():
            line = check_fences(name, arch, code)
            print(line)
            failed += line.startswith("FAIL")
            for fault, lines in FENCES_OF_ALL.items():
                if not check_fences(name, arch, code + lines).startswith("FAIL"):
                    print(f"FAIL {name} sm_{arch}: planted and not seen: {fault}")
                    failed += 1
    return 1 if failed else 0


def main():
    if len(sys.argv) == 1:
        find_nvrtc()
        return 0
    if sys.argv[1] == "--fences":
        return look_at_fences(sys.argv[2], sys.argv[3:])
    with open(sys.argv[1], encoding="utf-8") as file:
        source = file.read()
    word, nvrtc, pointers, failed = sys.argv[2], Nvrtc(), pointers_of(source), 0
    tiles = {name: parts for name, parts in by_part(source, tile_of).items() if any(word in part[2] for part in parts)}
    source = alone(source, tiles)
    needed = by_part(source, needed_loads)
    for arch in sys.argv[3:]:
        uses, code = look_at(nvrtc, source, arch)
        for name, parts in tiles.items():
            for tile, loop in zip(parts, loops_of_parts(code[name], parts, arch)):
                line = check(name, arch, tile, loop, code[name], uses[name], pointers[name])
                print(line)
                failed += line.startswith("FAIL")
                if not line.startswith("FAIL"):
                    missed = unseen(name, arch, tile, loop, code[name], uses[name], pointers[name])
                    failed += len(missed)
                    for fault in missed:
                        print(f"FAIL {name} sm_{arch}: planted and not seen: {fault}")
        for name, least in needed.items():
            line = check_epilogues(name, arch, least, code[name])
            missed = [] if line.startswith("FAIL") else unseen_in_epilogues(name, arch, least, code[name])
            failed += line.startswith("FAIL") + len(missed)
            print("\n".join([line] + [f"FAIL {name} sm_{arch}: planted and not seen: {fault}" for fault in missed]))
    return 1 if failed or not tiles else 0


if __name__ == "__main__":
    sys.exit(main())
