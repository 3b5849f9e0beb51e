"""bindings/python/ampc.py against the headers, against amprun, and against a user's mistakes.

Run by tests/checks/python.sh, with AMPC_LIBRARY_PATH, PYTHONPATH, AMPRUN and the repository as the current folder.
"""
import collections
import ctypes
import gc
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

import ampc

MODEL = """amp 1
const HIDDEN = 8
model rings(x: f32[N, 2]) -> logits, hidden {
    hidden = relu(linear(x; out = HIDDEN) as first)
    logits = linear(hidden; out = 3) as last
}
train rings {
    input targets: i32[N]
    loss = cross_entropy(logits, targets)
    metric acc = accuracy(logits, targets)
    metric ppl = exp(loss)
    optimizer = adamw(lr = 0.01)
}
precision fp16 { loss_scale = dynamic(init = 16.0, min = 1.0) }
"""
QUICK = {"isa": "portable", "target": "cpu"}
RANDOM = np.random.default_rng(1)
X = RANDOM.standard_normal((24, 2), np.float32)
TARGETS = RANDOM.integers(0, 3, 24).astype(np.int32)


def write_safetensors(path, **arrays):
    names = {np.dtype(np.float32): "F32", np.dtype(np.int32): "I32"}
    header, data = {}, b""
    for name, array in arrays.items():
        offsets = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": names[array.dtype], "shape": array.shape, "data_offsets": offsets}
        data += array.tobytes()
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)


HEADERS = [f"runtime/include/amp/{name}.h"
           for name in ("amp", "cpu", "cuda", "data", "inspect", "serve", "train", "weights")]
HEADERS += ["compiler/include/amp/compile.h", "compiler/include/amp/onnx.h"]


class Headers(unittest.TestCase):
    """Sizes, offsets and numbers are those that a C compiler sees."""

    @classmethod
    def setUpClass(cls):
        cls.structs = {name: value for name, value in vars(ampc).items()
                       if isinstance(value, type) and issubclass(value, ctypes.Structure) and name.startswith("amp_")}

    def compiled(self, lines):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "layout.c")
            prints = [f'    printf("%s %zu\\n", "{key}", (size_t)({value}));' for key, value in lines]
            public = [f'#include "{header.partition("include/")[2]}"' for header in HEADERS]
            lines = ['#include <stdio.h>', *public, "int main(void) {", *prints, "    return 0;", "}", ""]
            source.write_text("\n".join(lines))
            includes = ["-I" + path for path in ("base/include", "runtime/include", "compiler/include")]
            subprocess.run(["cc", "-std=c11", *includes, source, "-o", folder + "/layout"], check=True)
            said = subprocess.run([folder + "/layout"], check=True, capture_output=True, text=True).stdout
        return {key: int(value) for key, value in map(str.split, said.splitlines())}

    def test_structs(self):
        lines, mine = [], {}
        for name, struct_type in self.structs.items():
            lines.append((name, f"sizeof({name})"))
            mine[name] = ctypes.sizeof(struct_type)
            for field, _ in struct_type._fields_:
                key = f"{name}.{field}"
                lines += [(key, f"offsetof({name}, {field})"), (key + "/size", f"sizeof((({name} *)0)->{field})")]
                mine[key], mine[key + "/size"] = getattr(struct_type, field).offset, getattr(struct_type, field).size
        self.assertGreater(len(mine), 150)
        self.assertEqual(self.compiled(lines), mine)

    def test_numbers(self):
        statuses = [(name, name) for name in ampc.STATUS]
        emits = [("AMP_EMIT_" + name.upper(), "AMP_EMIT_" + name.upper()) for name in ampc.EMIT]
        dtypes = [("AMP_DT_" + name.upper(), "AMP_DT_" + name.upper()) for name in ampc.DTYPE_NAMES]
        found = self.compiled(statuses + emits + dtypes)
        for group in statuses, emits, dtypes:
            self.assertEqual([found[name] for name, _ in group], list(range(len(group))))

    def test_the_version(self):
        text = pathlib.Path("base/include/amp/version.h").read_text(encoding="utf-8")
        self.assertIn(f'AMP_VERSION "{ampc.version()}"', text)
        self.assertEqual(ampc.version().rpartition(".")[0], ampc.SOVERSION)

    def test_a_wrong_field_is_seen(self):
        wrong = [("amp_step_report.step", "offsetof(amp_step_report, iteration)")]
        self.assertNotEqual(self.compiled(wrong)["amp_step_report.step"], ampc.amp_step_report.step.offset)

    def test_every_parameter_list_is_as_long_as_in_the_headers(self):
        text = "".join(pathlib.Path(path).read_text(encoding="utf-8") for path in HEADERS)
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        for name, (_, *arguments) in {**ampc._AMP, **ampc._AMPC}.items():
            start = text.index(name + "(", text.index("extern")) + len(name) + 1
            declared = text[start:text.index(");", start)]
            self.assertEqual(len(arguments), 0 if declared == "void" else declared.count(",") + 1, name)


class Rings(unittest.TestCase):
    """A small classifier, compiled once."""

    @classmethod
    def setUpClass(cls):
        cls.compiled = ampc.compile(text=MODEL, name="rings.amp", **QUICK)
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.model = ampc.Model(self.compiled)
        self.params = ampc.Params(self.model, seed=7)
        self.session = ampc.Session(self.model, self.params, capacity=24, threads=1)

    def tearDown(self):
        for made in self.session, self.params, self.model:
            made.close()

    def refused(self, kind, text, run, /, *arguments, **named):
        with self.assertRaises(kind) as caught:
            run(*arguments, **named)
        self.assertIn(text, str(caught.exception))
        return caught.exception


LENGTHS = """amp 1
size T = 32, unit = 4
model texts(tokens: i32[N, T]) -> logits {
    param table: f32[50, 12] = normal(std = 1.0)
    logits = linear(relu(linear(embedding(tokens, table); out = 16) as fc); out = 50) as last
}
train texts {
    input targets: i32[N, T]
    loss = cross_entropy(logits, targets)
    optimizer = sgd(lr = 0.1)
}
"""


class Lengths(unittest.TestCase):
    def test_a_call_has_the_length_of_its_arrays(self):
        model = ampc.Model(ampc.compile(text=LENGTHS, name="texts.amp", **QUICK))
        self.assertEqual([tensor.shape for tensor in model.inputs + model.results],
                         [("N", "T"), ("N", "T"), ("N", "T", 50)])
        self.assertEqual((model.info.length_most, model.info.length_unit), (32, 4))
        params = ampc.Params(model, seed=3)
        session = ampc.Session(model, params, capacity=3, length=16)
        tokens = (np.arange(48, dtype=np.int32) % 50).reshape(3, 16)
        whole = session.infer(tokens)
        self.assertEqual(session.infer(np.ascontiguousarray(tokens[:, :8])).tobytes(), whole[:, :8].tobytes())
        for t in 4, 16, 8:
            session.step(np.ascontiguousarray(tokens[:, :t]), np.ascontiguousarray(tokens[:, :t]))
        self.assertEqual(session.infer(tokens.repeat(3, 0)).shape, (9, 16, 50))
        few = ampc.Session(model, params, capacity=3, tokens=32)
        many = tokens.repeat(3, 0)
        self.assertEqual(few.infer(many).tobytes(), session.infer(many).tobytes())
        with self.assertRaises(ampc.Error) as caught:
            few.step(tokens, tokens)
        self.assertIn("n * t is 3 * 16 = 48; this session takes 32 at most (tokens)", str(caught.exception))
        for error, text, shapes in (
                (ValueError, "input 'targets' has shape (3, 8); 3 samples, as in 'tokens', of T = 4, as in 'tokens', "
                 "are (3, 4)", ((3, 4), (3, 8))),
                (ampc.Error, "t is 6; it must be from 0 to 32 and a multiple of 4", ((3, 6), (3, 6))),
                (ampc.Error, "t is 20; it must be from 4 to 16 and a multiple of 4", ((3, 20), (3, 20)))):
            with self.assertRaises(error) as caught:
                session.step(*(np.zeros(shape, np.int32) for shape in shapes))
            self.assertIn(text, str(caught.exception))

    def test_two_models_share_weights(self):
        model = ampc.Model(ampc.compile(text=LENGTHS, name="texts.amp", **QUICK))
        fixed = ampc.Model(ampc.compile(text=LENGTHS, name="texts.amp", defines={"T": 8}, **QUICK))
        params = ampc.Params(model, seed=3)
        session, other = (ampc.Session(m, params, capacity=3) for m in (model, fixed))
        tokens = (np.arange(24, dtype=np.int32) % 50).reshape(3, 8)
        session.step(tokens, tokens)
        other.copy_checkpoint(session)
        self.assertEqual(other.step(tokens, tokens).step, 2)
        self.assertEqual(session.infer(tokens).tobytes(), other.infer(tokens).tobytes())

    def test_batches_of_a_dataset_have_lengths(self):
        model = ampc.Model(ampc.compile(text=LENGTHS, name="texts.amp", **QUICK))
        batches = [np.full((2, t), t, np.int32) for t in (8, 32, 4)]
        data = ampc.Dataset(model, lambda i: (batches[i], batches[i]) if i < 3 else None, capacity=2)
        self.assertEqual([tokens.shape for tokens, _ in data], [(2, 8), (2, 32), (2, 4)])
        data.seek(1)
        self.assertEqual(next(data)[1].tobytes(), batches[1].tobytes())
        short = ampc.Dataset(model, lambda i: (batches[i], batches[i]), capacity=2, length=8)
        next(short)
        with self.assertRaises(ampc.Error) as caught:
            next(short)
        self.assertIn("batch 1: the callback: t is 32; it must be from 4 to 8 and a multiple of 4",
                      str(caught.exception))
        few = ampc.Dataset(model, lambda i: (batches[i], batches[i]), capacity=2, tokens=16)
        self.assertEqual(next(few)[0].tobytes(), batches[0].tobytes())
        with self.assertRaises(ampc.Error) as caught:
            next(few)
        self.assertIn("batch 1: the callback says that it has n * t = 2 * 32; there is room for 16 (tokens)",
                      str(caught.exception))


class Training(Rings):
    def test_the_bits_of_amprun(self):
        self.compiled.save(self.path / "rings.so")
        self.params.save(self.path / "first.st")
        write_safetensors(self.path / "batch.st", x=X, targets=TARGETS)
        command = "step rings.so --weights first.st --inputs batch.st --steps 12 --save trained.st"
        said = subprocess.run([os.environ["AMPRUN"], *command.split()], cwd=self.path, check=True, capture_output=True,
                              text=True).stdout
        losses = [json.loads(line)["loss"] for line in said.splitlines()]
        reports = [self.session.step(X, TARGETS) for _ in range(12)]
        self.assertEqual([np.float32(report.loss) for report in reports], [np.float32(loss) for loss in losses])
        theirs = ampc.Params(self.model)
        theirs.load(self.path / "trained.st")
        for name, array in self.params.items():
            self.assertEqual(array.tobytes(), theirs[name].tobytes(), name)
        untrained = ampc.Params(self.model, seed=7)["last.weight"]
        self.assertNotEqual(self.params["last.weight"].tobytes(), untrained.tobytes())

    def test_arrays_of_every_kind(self):
        by_name = self.session.evaluate(targets=TARGETS, x=X)
        self.assertEqual(self.session.evaluate(X, TARGETS), by_name)
        self.assertEqual(self.session.evaluate(X.tolist(), TARGETS.tolist()), by_name)
        self.assertEqual(self.session.evaluate(np.asfortranarray(X), np.repeat(TARGETS, 2)[::2]), by_name)

        class Foreign:
            def __array__(self, dtype=None, copy=None):
                return X
        self.assertEqual(self.session.evaluate(Foreign(), TARGETS), by_name)

    def test_more_than_the_capacity_is_averaged(self):
        small = ampc.Session(self.model, self.params, capacity=7)
        whole, parts = self.session.evaluate(X, TARGETS), small.evaluate(X, TARGETS)
        self.assertAlmostEqual(parts.loss, whole.loss, 5)
        self.assertAlmostEqual(parts.metrics["acc"], whole.metrics["acc"], 6)
        self.assertAlmostEqual(parts.metrics["ppl"], np.exp(parts.loss), 4)
        one, many = self.session.infer(X), small.infer(X)
        self.assertEqual(list(one), ["logits", "hidden"])
        for name, array in one.items():
            np.testing.assert_array_equal(many[name], array)
        self.refused(ampc.Error, "capacity", small.step, X, TARGETS)

    def test_a_checkpoint_goes_on(self):
        file = self.path / "state.ck"
        self.session.step(X, TARGETS)
        self.session.save_checkpoint(file, extra="epoch 3, größer")
        self.session.step(X, TARGETS)
        params = ampc.Params(self.model)
        again = ampc.Session(self.model, params, capacity=24)
        self.refused(ampc.Error, "extra", again.load_checkpoint, file, longest_extra=2)
        self.assertEqual(again.load_checkpoint(file), "epoch 3, größer")
        self.assertEqual(again.step(X, TARGETS).step, 2)
        self.assertEqual(params["first.weight"].tobytes(), self.params["first.weight"].tobytes())

    def test_metrics_values_and_states(self):
        session = ampc.Session(self.model, self.params, capacity=24, keep_values=True)
        report = session.step(X, TARGETS)
        self.assertEqual(set(session.metrics()), {"acc", "ppl"})
        self.assertAlmostEqual(session.metrics()["ppl"], np.exp(report.loss), 4)
        self.assertEqual(session.value("grad.first.weight").shape, (8, 2))
        for name in session.value_names():
            session.value(name)
        norm = np.sqrt(sum((session.value("grad." + name).astype(float) ** 2).sum() for name in self.params))
        self.assertAlmostEqual(session.grad_norm(), norm, 6)
        moment = np.arange(3, dtype=np.float32)
        session.set_state("last.bias/m", moment)
        np.testing.assert_array_equal(session.state("last.bias/m"), moment)
        self.refused(KeyError, "PARAMETER/NAME", session.state, "nothing")
        self.refused(ampc.Error, "without keep_values", self.session.value, "loss")
        memory = session.memory()
        kinds = [memory[kind] for kind in memory if kind not in ("total", "device", "model")]
        self.assertEqual(memory["total"], sum(kinds))
        self.assertGreater(memory["model"], 1000)

    def test_the_scale_at_its_floor_is_reported(self):
        for _ in range(6):
            report = self.session.step(np.full_like(X, np.inf), TARGETS)
        self.assertEqual((report.at_floor, report.iteration, report.step), (1, 6, 0))
        self.session.set_scaler(floor_hits=0, scale=4.0)
        self.assertEqual(self.session.scaler()["scale"], 4.0)
        self.assertEqual(self.session.step(X, TARGETS).at_floor, 0)


class Mistakes(Rings):
    def test_what_an_array_should_be_is_said(self):
        step = self.session.step
        self.refused(TypeError, "input 'x' is float32 of shape (N, 2); an array of float64 was given: convert it with "
                     ".astype(np.float32)", step, X.astype(float), TARGETS)
        self.refused(TypeError, "input 'targets' is int32 of shape (N); float64 was given", step, X, [0.5] * 24)
        self.refused(ValueError, "input 'x' is float32 of shape (N, 2); an array of shape (24, 3)", step,
                     np.zeros((24, 3), np.float32), TARGETS)
        self.refused(ValueError, "an array of shape (24,) was given", step, X[:, 0], TARGETS)
        self.refused(ValueError, "input 'targets' has shape (23,); 24 samples, as in 'x', are (24,)", step, X,
                     TARGETS[:-1])
        self.refused(ValueError, "no whole number of samples", step, X[:0], TARGETS[:0])
        self.refused(TypeError, "missing input targets", step, X)
        self.refused(TypeError, "3 inputs were given; wanted are x, targets", step, X, TARGETS, TARGETS)
        self.refused(TypeError, "there is no input 'y'; wanted are x, targets", step, X, y=TARGETS)
        self.refused(TypeError, "input 'x' is given twice", step, X, TARGETS, x=X)
        self.refused(ValueError, "parameter 'last.bias' is float32 of shape (3)", self.params.__setitem__, "last.bias",
                     [1, 2])
        self.refused(KeyError, "it has first.weight, first.bias, last.weight, last.bias", self.params.__getitem__,
                     "bias")
        self.assertEqual(self.session.scaler()["iteration"], 0)

    def test_errors_of_the_library(self):
        error = self.refused(ampc.Error, "no/such.so", ampc.Model, "no/such.so")
        self.assertEqual(error.status, "AMP_NOT_FOUND")
        self.assertEqual(self.refused(ampc.Error, "", ampc.Model, b"text").status, "AMP_BAD_FILE")
        self.refused(TypeError, "amp_session_options has no 'size'; it has capacity, device", ampc.Session, self.model,
                     self.params, size=3)
        inference = ampc.Session(self.model, self.params, capacity=24, program="infer")
        self.assertEqual(self.refused(ampc.Error, "", inference.step, X, TARGETS).status, "AMP_WRONG_STATE")

    def test_errors_of_the_compiler(self):
        text = "amp 1\nmodel m(x: f32[N, 2]) -> y { a = linea(x)\n y = reluu(x) }\n"
        error = self.refused(ampc.CompileError, "did you mean 'relu'", ampc.compile, text=text, name="m.amp")
        self.assertEqual((error.status, len(error.diagnostics)), ("AMP_BAD_SOURCE", 2))
        self.assertIn("m.amp:2:", error.diagnostics[0])
        self.refused(ampc.CompileError, "no/such.amp", ampc.compile, "no/such.amp")
        self.refused(TypeError, "either the path", ampc.compile)
        self.refused(ValueError, "emit is one of so, c, ir", ampc.compile, text=text, emit="exe")
        self.refused(TypeError, "amp_compile_options has no 'colour'", ampc.compile, text=text, colour=1)

    def test_closed_objects_say_so(self):
        with ampc.Session(self.model, self.params) as session:
            pass
        self.refused(ValueError, "this Session is closed", session.infer, X)
        session.close()
        self.params.close()
        self.refused(ValueError, "this Params is closed", self.params.__getitem__, "last.bias")
        self.session.step(X, TARGETS)  # has a reference of its own


class Use(Rings):
    def test_lowering_an_onnx_model(self):
        model, out = self.path / "small.onnx", self.path / "out.onnx"
        write = [sys.executable, "-B", "tests/checks/onnx_write.py", model]
        subprocess.run(write, check=True)
        told = ampc.autocast(model, out, keep_io=True, policy="torch-fp16")
        self.assertEqual((told["nodes"], told["lowered"], told["casts"]), (4, 3, 2))
        self.assertIn(b"ampc.because", out.read_bytes())
        compared = ampc.compare_onnx(model, out)
        self.assertEqual([node["op_type"] for node in compared["changed"]], ["MatMul", "Add", "Relu"])
        self.assertTrue(ampc.compare_onnx(out, out)["same"])
        self.refused(ampc.CompileError, "nosuch.onnx", ampc.compare_onnx, out, "nosuch.onnx")
        self.assertEqual(ampc.autocast(model, keep=["Relu"])["lowered"], 2)
        with self.assertRaisesRegex(ampc.CompileError, "none of 4 nodes was lowered"):
            ampc.autocast(model, keep=["*"])
        with self.assertRaisesRegex(ampc.CompileError, "did you mean torch-fp16?"):
            ampc.autocast(model, policy="torch-fp61")
        with self.assertRaisesRegex(TypeError, "keep is a list of text"):
            ampc.autocast(model, keep="Relu")
        subprocess.run([*write, "--domain", "com.example"], check=True)
        self.assertEqual(ampc.autocast(model, assume={"v": "float32"})["lowered"], 2)
        self.assertTrue(ampc.compare_onnx(model, model, assume={"v": "float32"})["same"])

    def test_compiling_and_explaining(self):
        other = ampc.compile(text=MODEL, defines={"HIDDEN": 5}, emit="ir", stop_after="autocast")
        self.assertIn(b"5, 2", other.data)
        self.assertEqual(other.warnings, [])
        self.assertIn("first.linear", ampc.explain(text=MODEL, glob="first*"))
        self.assertNotIn("last.linear", ampc.explain(text=MODEL, glob="first*"))
        self.assertIn("rows", ampc.explain(text=MODEL, json=True))
        self.assertNotIn("\nrelu ", ampc.explain(text=MODEL, op="linear"))
        model = self.path / "compared.amp"
        model.write_text(MODEL)
        self.assertIn("no difference", ampc.compare(model, model))
        compared = ampc.compare(model, model, json=True, before_options={"precision": "fp32"}, precision="bf16")
        self.assertFalse(compared["same"])
        self.assertEqual(compared["before"]["policy"], "fp32")
        lines = ampc.compare(model, model, json=True, precision="fp16", before_options={"overrides": {"first": "f32"}})
        self.assertFalse(lines["same"])
        self.assertIn("override", ampc.explain(text=MODEL, glob="first*", overrides={"first": "f32"}))
        self.refused(ampc.CompileError, "nosuch", ampc.compile, text=MODEL, overrides={"nosuch": "f32"})
        self.refused(ampc.CompileError, "there is no policy nosuch", ampc.compare, model, model,
                     before_options={"policy": "nosuch"})
        output = self.path / "out.so"
        ampc.compile(text=MODEL, output=output, **QUICK)
        first = ampc.Model(output)
        self.assertEqual(first.info.name, "rings")
        for again in (output, output.read_bytes()):
            self.assertEqual(ampc.Model(again, like=first)._pointer.value, first._pointer.value)
            self.assertNotEqual(ampc.Model(again)._pointer.value, first._pointer.value)
        self.assertEqual(ampc.Model(output.read_bytes()).info.optimizer, self.model.info.optimizer)

    def test_params_are_a_mapping(self):
        self.assertIsInstance(self.params, collections.abc.Mapping)
        self.assertEqual(list(self.params), ["first.weight", "first.bias", "last.weight", "last.bias"])
        self.assertEqual(self.params["first.weight"].shape, (8, 2))
        self.params["last.bias"] = [1, 2, 3]
        np.testing.assert_array_equal(self.params["last.bias"], [1, 2, 3])
        other = ampc.Params(self.model, seed=8)
        other.update(self.params)
        self.assertEqual({k: v.tobytes() for k, v in other.items()}, {k: v.tobytes() for k, v in self.params.items()})

    def test_params_from_elsewhere(self):
        file = self.path / "some.st"
        self.params.save(file)
        other = ampc.Params(self.model, zeros=1)
        self.assertEqual(other["last.bias"].tolist(), [0, 0, 0])
        other.load(file.read_bytes())
        kept = other.snapshot()
        other["last.bias"] = [1, np.nan, 3]
        self.assertEqual((other.count_nonfinite(), kept.count_nonfinite()), (1, 0))
        other.assign(kept)
        self.assertEqual({k: v.tobytes() for k, v in other.items()}, {k: v.tobytes() for k, v in self.params.items()})

        write_safetensors(file, **{"last.bias": np.float32([7, 8, 9]), "old": np.float32([4, 5, 6]),
                                   "first.weight": np.zeros((2, 2), np.float32)})
        found = {}
        report = other.load(file, partial=True, difference=lambda name, kind, _: found.update({name: kind}))
        self.assertEqual(found, {"old": "extra", "first.weight": "misfit", "first.bias": "missing",
                                 "last.weight": "missing"})
        self.assertEqual((report.loaded, report.missing, report.misfits, report.extra), (1, 2, 1, 1))
        self.assertEqual(other["last.bias"].tolist(), [7, 8, 9])
        other.load(file, partial=True, rename=["old=last.bias"], ignore=["last.bias"])
        self.assertEqual(other["last.bias"].tolist(), [4, 5, 6])

    def test_published_weights(self):
        with tempfile.TemporaryDirectory() as folder:
            file, saved = pathlib.Path(folder, "w.safetensors"), pathlib.Path(folder, "saved.safetensors")
            values = {name: np.ascontiguousarray(self.params[name]) for name in self.params}
            turned = {**values, "first.weight": np.ascontiguousarray(values["first.weight"].T)}
            write_safetensors(file, **{"net." + name: value for name, value in turned.items()},
                              mask=np.zeros(3, np.float32))
            rules = {"rename": [("net.*", "*")], "ignore": ["mask"], "transpose": ["first.weight"]}
            seen = []
            with self.assertRaisesRegex(ampc.Error, "Try rename 'net"):
                self.params.load(file, difference=lambda *what: seen.append(what))
            self.assertEqual({kind for _, kind, _ in seen}, {"missing", "extra"})
            with self.assertRaises(ZeroDivisionError):
                self.params.load(file, difference=lambda *what: 1 / 0)
            with self.assertRaisesRegex(TypeError, "ignore is a list of text"):
                self.params.load(file, ignore="mask")
            other = ampc.Params(self.model, seed=99)
            report = other.load(file, **rules)
            self.assertEqual((report.loaded, report.transposed, report.ignored), (len(values), 1, 1))
            for name, value in values.items():
                np.testing.assert_array_equal(other[name], value)
            other.save(saved, like=file, **rules)
            again = ampc.Params(self.model, seed=98)
            again.load(saved, **rules)
            np.testing.assert_array_equal(again["first.weight"], values["first.weight"])

    def test_published_versions(self):
        self.assertEqual(self.params.publish()["version"], 1)
        serving = ampc.Session(self.model, self.params, capacity=24, published=1)
        first = serving.infer(X)["logits"]
        self.session.step(X, TARGETS)
        np.testing.assert_array_equal(serving.infer(X)["logits"], first)
        self.assertEqual(self.params.publish()["version"], 2)
        self.assertFalse(np.array_equal(serving.infer(X)["logits"], first))
        self.assertEqual(serving.version(), 2)
        self.session.close()
        self.params.drop_masters()
        error = self.refused(ampc.Error, "", self.params.__getitem__, "last.bias")
        self.assertEqual(error.status, "AMP_WRONG_STATE")
        self.assertEqual(serving.infer(X)["logits"].shape, (24, 3))

    def test_what_the_libraries_say(self):
        stages, said = [], []
        so = ampc.compile(text=MODEL, progress=lambda *stage: stages.append(stage), **QUICK)
        self.assertEqual((stages[0][:2], stages[-1][0]), (("elaborate", 0), "cc"))
        self.assertEqual({count for _, _, count in stages}, {len(stages)})
        model = ampc.Model(so)
        ampc.Session(model, ampc.Params(model), threads=1, log=lambda *line: said.append(line))
        self.assertEqual((said[0][0], said[0][1][:13]), ("info", "cpu: 1 thread"))
        error = self.refused(ampc.Error, "before cc", ampc.compile, text=MODEL,
                             progress=lambda stage, *_: stage == "cc", **QUICK)
        self.assertEqual(error.status, "AMP_CANCELLED")

    def test_the_norm_of_the_gradients(self):
        session = ampc.Session(self.model, self.params, capacity=24, grad_norm=1)
        session.step(X, TARGETS)
        self.assertGreater(session.grad_norm(), 0)
        self.session.step(X, TARGETS)
        error = self.refused(ampc.Error, "grad_norm = 1", self.session.grad_norm)
        self.assertEqual(error.status, "AMP_WRONG_STATE")

    def test_averages_and_blends(self):
        model = ampc.Model(ampc.compile(text=MODEL.replace("    optimizer", "    ema = 0.5\n    optimizer"), **QUICK))
        params = ampc.Params(model)
        averages, target = params.snapshot(), params.snapshot()
        session = ampc.Session(model, params, capacity=24)
        for _ in range(2):
            session.step(X, TARGETS)
        session.averages(averages)
        np.testing.assert_array_equal(averages["last.bias"], session.state("last.bias/ema"))
        self.assertNotEqual(averages["last.bias"].tolist(), params["last.bias"].tolist())
        session.save_checkpoint(self.path / "averages.ckpt")
        target.load(self.path / "averages.ckpt", ema=True)
        np.testing.assert_array_equal(target["first.weight"], averages["first.weight"])
        target.blend(params, 0.5)
        np.testing.assert_allclose(target["last.bias"], (averages["last.bias"] + params["last.bias"]) / 2, rtol=1e-6)
        error = self.refused(ampc.Error, "t is 2", target.blend, params, 2)
        self.assertEqual(error.status, "AMP_INVALID_ARGUMENT")

    def test_the_learning_rate(self):
        text = MODEL.replace("    optimizer", "    group \"last.*\": lr_scale = 0.5\n    optimizer")
        model = ampc.Model(ampc.compile(text=text, **QUICK))
        self.assertEqual([(g["pattern"], g["lr_scale"]) for g in model.groups()], [("last.*", 0.5)])
        how = model.training()
        self.assertEqual([how[name]["lr_scale_group"] for name in ("first.bias", "last.bias")], [-1, 0])
        self.assertTrue(how["last.bias"]["trained"])
        params = ampc.Params(model)
        session = ampc.Session(model, params, capacity=24)
        self.assertEqual((session.lr(), session.lr_scale(0)), (0.01, 0.5))
        session.set_lr(0)
        before = params["last.bias"].tolist()
        session.step(X, TARGETS)
        self.assertEqual((session.lr(), params["last.bias"].tolist()), (0, before))
        session.set_lr(None)
        session.set_lr_scale(0, 0)
        session.step(X, TARGETS)
        self.assertEqual((session.lr(), session.lr_scale(0), params["last.bias"].tolist()), (0.01, 0, before))
        session.set_lr_scale(0, None)
        self.assertEqual(session.lr_scale(0), 0.5)
        error = self.refused(ampc.Error, "", session.set_lr, -2.0)
        self.assertEqual(error.status, "AMP_INVALID_ARGUMENT")

    def test_datasets(self):
        x, targets = X[:8], TARGETS[:8]
        asked, broken = [], [True]
        def fill(index):
            asked.append(index)
            if index == 5 and broken[0]:
                raise KeyError("a torn tape")
            return None if index == 7 else {"targets": targets[:8 - index], "x": x[:8 - index] * index}
        with ampc.Dataset(self.model, fill, 8, ahead=3, first=1) as data:
            for index, (a, b) in zip(range(1, 5), data):
                self.assertTrue(np.array_equal(a, x[:8 - index] * index) and np.array_equal(b, targets[:8 - index]))
            with self.assertRaisesRegex(KeyError, "a torn tape"):
                next(data)
            broken[0] = False
            self.assertEqual((data.position(), len(list(data)), data.position()), (5, 2, 7))
            data.seek(6)
            self.assertEqual(len(next(data)[0]), 2)
        self.assertEqual(asked[:5], [1, 2, 3, 4, 5])
        for wrong, said in ((lambda _: (x,), "missing input"), (lambda _: (x, targets[:3]), "has shape"),
                            (lambda _: (x.astype(np.float64), targets), "float64")):
            with self.assertRaisesRegex((TypeError, ValueError), said):
                next(ampc.Dataset(self.model, wrong, 8))
        self.refused(ampc.Error, "there is room for 4", next, ampc.Dataset(self.model, lambda _: (x, targets), 4))
        only_x = ampc.Dataset(self.model, lambda index: None if index else x, 8, program="infer", ahead=-1)
        self.assertEqual([len(batch) for batch in only_x], [1])

    def test_what_a_model_says(self):
        self.assertEqual(self.model.inputs, [("x", "f32", ("N", 2)), ("targets", "i32", ("N",))])
        self.assertEqual(self.model.index_counts(), {"x": 0, "targets": 3})
        self.assertEqual(self.model.results, [("logits", "f32", ("N", 3)), ("hidden", "f32", ("N", 8))])
        why = list(self.model.decisions())
        self.assertEqual(len(why), self.model.info.decision_count)
        self.assertEqual((why[0]["path"], why[0]["dtype"], why[0]["reason"][0]), ("first.linear", "f16", "{"))
        self.assertIn("rings", repr(self.model))

    def test_threads_take_a_session_in_turn(self):
        wanted, wrong = self.session.infer(X)["logits"], []

        def use():
            for _ in range(50):
                if not np.array_equal(self.session.infer(X)["logits"], wanted):
                    wrong.append(1)
        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_nothing_leaks(self):
        def once():
            with ampc.Model(self.compiled) as model, ampc.Params(model) as params, \
                    ampc.Session(model, params, 24) as session:
                session.step(X, TARGETS)

        def held():
            gc.collect()
            with open("/proc/self/maps", encoding="utf-8") as maps:
                return len(os.listdir("/proc/self/fd")), sum("memfd" in line for line in maps)
        once()
        before = held()
        for _ in range(20):
            once()
        self.assertEqual(held(), before)

    def test_the_library_that_is_missing_is_named(self):
        code = "import ampc; ampc.version()"
        empty = tempfile.mkdtemp(dir=self.path)
        done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, check=False,
                              env={**os.environ, "AMPC_LIBRARY_PATH": empty, "LD_LIBRARY_PATH": ""})
        if done.returncode:  # it may be installed
            self.assertIn("set AMPC_LIBRARY_PATH", done.stderr)
            self.assertIn(empty, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
