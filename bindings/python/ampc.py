"""ampc: models in the .amp language from Python: compile, train, evaluate and use them, with NumPy arrays in and out.

    import ampc
    compiled = ampc.compile("mlp.amp")
    with ampc.Model(compiled) as model, ampc.Params(model, seed=7) as params, \\
            ampc.Session(model, params, capacity=64) as session:
        report = session.step(x, targets)           # or session.step(x=x, targets=targets)
        logits = session.infer(x)
        params["fc1.weight"]                        # a NumPy array; assign one to set it

One file over the shared libraries libamp (amp/amp.h) and libampc (amp/compile.h), through ctypes; it needs NumPy and
nothing else. The libraries are looked for in the folders of AMPC_LIBRARY_PATH, beside this file, in the prefix that it
is installed in, and where the system looks.

Errors are exceptions: ampc.Error with the library's message, TypeError and ValueError for arrays that do not fit a
model; after one, every object is as it was. Threads: as amp/amp.h says; a session that two threads use at once takes
them one after another. Arrays are never converted in silence, only copied where they are not contiguous; lists are made
arrays.
"""
import collections
import collections.abc
import ctypes
import fractions
import itertools
import json as _json
import os
import threading
from ctypes import POINTER, Structure, byref
from ctypes import c_char, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint64, c_void_p

import numpy as np

__all__ = ["Compiled", "CompileError", "Dataset", "Error", "Evaluation", "Model", "Params", "Session", "StepReport",
           "Tensor", "WeightsReport", "compile", "explain", "compare", "autocast", "compare_onnx",
           "version"]

# ---- the headers of C ------------------------------------------------------------------------------------------------
# tests/checks/python.sh compares sizes and offsets with amp/base.h, amp/amp.h and amp/compile.h.

SOVERSION = "0.1"
STATUS = ["AMP_OK", "AMP_INVALID_ARGUMENT", "AMP_OUT_OF_MEMORY", "AMP_IO", "AMP_BAD_FILE", "AMP_NOT_FOUND",
          "AMP_MISMATCH", "AMP_BAD_SOURCE", "AMP_UNSUPPORTED", "AMP_WRONG_STATE", "AMP_SCALE_AT_FLOOR", "AMP_INTERNAL",
          "AMP_DEVICE_FAILED", "AMP_CANCELLED", "AMP_PEER_FAILED"]
# By amp_dtype. NumPy has no bf16: its words are given as they are; tf32 is stored as f32.
DTYPES = [None, np.float32, np.float16, np.uint16, np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_]
DTYPE_NAMES = ["none", "f32", "f16", "bf16", "tf32", "f64", "i32", "i64", "u8", "bool", "f8m", "f8v"]
LOG_LEVELS = ["progress", "info", "warning"]
EMIT = ["so", "c", "ir", "cu", "ptx", "o"]
_SCALE_AT_FLOOR = STATUS.index("AMP_SCALE_AT_FLOOR")
_LR_OF_MODEL = -1.0
_FLOATS = range(DTYPE_NAMES.index("f32"), DTYPE_NAMES.index("f64") + 1)


def _struct(type_name, /, **fields):
    return type(type_name, (Structure,), {"_fields_": list(fields.items())})


amp_error = _struct("amp_error", code=c_int32, message=c_char * 1020)
amp_sizes = _struct("amp_sizes", n=c_int64, t=c_int64)
amp_model_options = _struct(
    "amp_model_options", struct_size=c_size_t, allocator=c_void_p, bytes=c_char_p, size=c_size_t, like=c_void_p)
amp_model_info = _struct(
    "amp_model_info", name=c_char_p, policy=c_char_p, precision=c_char_p, optimizer=c_char_p, scaler=c_char_p,
    source_name=c_char_p, compiler_version=c_char_p, can_train=c_int32, input_count=c_int32, model_input_count=c_int32,
    result_count=c_int32, metric_count=c_int32, loss_count=c_int32, param_count=c_int32, decision_count=c_int32,
    param_elements=c_int64, accumulate=c_int64, least_batch=c_int64, has_fp32=c_int32, has_cuda=c_int32,
    cuda_kernels=c_int32, cuda_missing=c_char_p, sums=c_char_p, length_most=c_int64, length_unit=c_int64)
amp_tensor_info = _struct("amp_tensor_info", name=c_char_p, dtype=c_int32, rank=c_int32, dims=c_int64 * 8)
amp_decision = _struct(
    "amp_decision", path=c_char_p, op=c_char_p, dtype=c_int32, rule=c_char_p, reason=c_char_p, policy_text=c_char_p,
    because=c_char_p, file=c_char_p, line=c_int32, column=c_int32)
amp_param_training = _struct(
    "amp_param_training", trained=c_int32, block=c_int32, only=c_char_p, optimizer=c_char_p, lr_scale_group=c_int32,
    weight_decay_group=c_int32, frozen_group=c_int32, optimizer_group=c_int32)
amp_group_info = _struct(
    "amp_group_info", pattern=c_char_p, block=c_int32, sets_lr_scale=c_int32, sets_weight_decay=c_int32,
    frozen=c_int32, lr_scale=c_double, weight_decay=c_double, line=c_int32, sets_optimizer=c_int32)
amp_params_options = _struct("amp_params_options", struct_size=c_size_t, seed=c_uint64, zeros=c_int32)
_DIFFERENCE = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_int32, c_char_p)
amp_weights_options = _struct(
    "amp_weights_options", struct_size=c_size_t, ignore=POINTER(c_char_p), rename=POINTER(c_char_p),
    transpose=POINTER(c_char_p), fresh=POINTER(c_char_p), partial=c_int32, bytes=c_char_p, size=c_size_t, like=c_char_p,
    user=c_void_p, difference=_DIFFERENCE, ema=c_int32)
amp_weights_report = _struct(
    "amp_weights_report", loaded=c_int32, fresh=c_int32, transposed=c_int32, rounded=c_int32, ignored=c_int32,
    missing=c_int32, misfits=c_int32, extra=c_int32)
amp_publish_report = _struct(
    "amp_publish_report", version=c_uint64, copied_bytes=c_uint64, shared_bytes=c_uint64, bytes_alive=c_uint64,
    versions_alive=c_int32, reserved=c_int32)
_LOG = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_char_p)
amp_cpu_options = _struct("amp_cpu_options", struct_size=c_size_t, isa=c_char_p, run_tasks=c_void_p, user=c_void_p)
amp_cuda_options = _struct("amp_cuda_options", struct_size=c_size_t, index=c_int32, device_inputs=c_int32,
                           pinned_inputs=c_int32, products=c_int32, stream=c_void_p, choices=c_char_p,
                           products_seconds=c_double)
amp_inspect_options = _struct("amp_inspect_options", struct_size=c_size_t, keep_values=c_int32, grad_norm=c_int32,
                              looks_at_all=c_int32, separate_buffers=c_int32)
amp_session_options = _struct(
    "amp_session_options", struct_size=c_size_t, capacity=amp_sizes, device=c_char_p, program=c_char_p,
    precision=c_char_p, threads=c_int32, published=c_int32, seed=c_uint64, log=_LOG, log_user=c_void_p,
    cpu=POINTER(amp_cpu_options), cuda=POINTER(amp_cuda_options), inspect=POINTER(amp_inspect_options), comm=c_void_p,
    tokens=c_int64)
amp_step_report = _struct(
    "amp_step_report", loss=c_double, scale=c_float, skipped=c_int32, step=c_int64, iteration=c_int64, at_floor=c_int32,
    complete=c_int32, grad_norm=c_double, states_kept=c_int32, too_few=c_int32)
amp_scaler_state = _struct(
    "amp_scaler_state", scale=c_float, growth_tracker=c_int32, floor_hits=c_int32, reserved=c_int32, step=c_int64,
    iteration=c_int64)
amp_memory_info = _struct(
    "amp_memory_info", params=c_uint64, derived=c_uint64, moments=c_uint64, activations=c_uint64, outputs=c_uint64,
    scratch=c_uint64, total=c_uint64, device=c_uint64, model=c_uint64)
_FILL = ctypes.CFUNCTYPE(c_int32, c_void_p, c_int64, POINTER(c_void_p), amp_sizes, POINTER(amp_sizes),
                         POINTER(amp_error))
amp_dataset_options = _struct(
    "amp_dataset_options", struct_size=c_size_t, fill=_FILL, user=c_void_p, capacity=amp_sizes, first=c_int64,
    ahead=c_int32, program=c_char_p, tokens=c_int64)
amp_define = _struct("amp_define", name=c_char_p, value=c_char_p)
amp_override = _struct("amp_override", path=c_char_p, word=c_char_p, because=c_char_p)
_PROGRESS = ctypes.CFUNCTYPE(c_int32, c_void_p, c_char_p, c_int32, c_int32)
_DIAGNOSTIC = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_int32)
amp_compile_options = _struct(
    "amp_compile_options", struct_size=c_size_t, name=c_char_p, text=c_char_p, text_size=c_size_t,
    defines=POINTER(amp_define), define_count=c_size_t, no_files=c_int32, max_ops=c_int64, precision=c_char_p,
    eval_precision=c_char_p, policy=c_char_p, overrides=POINTER(amp_override), override_count=c_size_t,
    batch_hint=c_int64, sums=c_char_p, target=c_char_p, isa=c_char_p, gpu_arch=c_char_p, distribute=c_char_p,
    accumulate_order=c_char_p, emit=c_int32, output=c_char_p, symbol=c_char_p, no_ir=c_int32,
    stop_after=c_char_p, no_pass=c_char_p, c_compiler=c_char_p, allocator=c_void_p, diagnostic=_DIAGNOSTIC,
    dump=c_void_p, timing=c_void_p, dependency=c_void_p, progress=_PROGRESS, cancelled=c_void_p, user=c_void_p)
amp_explain_options = _struct(
    "amp_explain_options", struct_size=c_size_t, path=c_char_p, dtype=c_char_p, op=c_char_p, rule=c_char_p,
    sort=c_char_p, batch=c_int64, all=c_int32, form=c_int32, parts=c_void_p,
    part_count=c_size_t)
amp_onnx_options = _struct(
    "amp_onnx_options", struct_size=c_size_t, output=c_char_p, force=c_int32, json=c_int32, all=c_int32,
    keep_io=c_int32, precision=c_char_p, policy=c_char_p, keep=POINTER(c_char_p), keep_count=c_size_t,
    assume=POINTER(c_char_p), assume_count=c_size_t, ranges=c_char_p, opset=c_int64, batch_hint=c_int64,
    allocator=c_void_p, diagnostic=_DIAGNOSTIC, dependency=c_void_p, user=c_void_p, html=c_int32)

_STATUS, _ERR = c_int32, POINTER(amp_error)
_MODEL = _PARAMS = _SESSION = _DATASET = _RESULT = c_void_p
_AMP = {
    "amp_version": (c_char_p,),
    "amp_model_load": (_STATUS, c_char_p, POINTER(amp_model_options), POINTER(_MODEL), _ERR),
    "amp_model_release": (None, _MODEL),
    "amp_model_get_info": (None, _MODEL, c_void_p),
    "amp_model_input_at": (_STATUS, _MODEL, c_int32, amp_sizes, c_void_p, _ERR),
    "amp_model_get_index_range": (_STATUS, _MODEL, c_int32, POINTER(c_int64), POINTER(c_int64), _ERR),
    "amp_model_expect": (_STATUS, _MODEL, c_char_p, _ERR),
    "amp_model_result_at": (_STATUS, _MODEL, c_int32, amp_sizes, c_void_p, _ERR),
    "amp_model_param_at": (_STATUS, _MODEL, c_int32, c_void_p, _ERR),
    "amp_model_param_training_at": (_STATUS, _MODEL, c_int32, c_void_p, _ERR),
    "amp_model_group_at": (_STATUS, _MODEL, c_int32, c_void_p, _ERR),
    "amp_model_metric_name": (c_char_p, _MODEL, c_int32),
    "amp_model_loss_name": (c_char_p, _MODEL, c_int32),
    "amp_model_isa_name": (c_char_p, _MODEL, c_int32),
    "amp_model_decision_at": (_STATUS, _MODEL, c_int32, c_void_p, _ERR),
    "amp_params_create": (_STATUS, _MODEL, POINTER(amp_params_options), POINTER(_PARAMS), _ERR),
    "amp_params_release": (None, _PARAMS),
    "amp_params_get": (_STATUS, _PARAMS, c_char_p, c_void_p, c_size_t, _ERR),
    "amp_params_set": (_STATUS, _PARAMS, c_char_p, c_void_p, c_size_t, _ERR),
    "amp_params_load": (_STATUS, _PARAMS, c_char_p, POINTER(amp_weights_options), c_void_p, _ERR),
    "amp_params_save": (_STATUS, _PARAMS, c_char_p, POINTER(amp_weights_options), _ERR),
    "amp_params_copy": (_STATUS, _PARAMS, _PARAMS, _ERR),
    "amp_params_blend": (_STATUS, _PARAMS, _PARAMS, c_double, _ERR),
    "amp_params_snapshot": (_STATUS, _PARAMS, POINTER(_PARAMS), _ERR),
    "amp_params_count_nonfinite": (_STATUS, _PARAMS, POINTER(c_int64), POINTER(c_char_p), _ERR),
    "amp_params_publish": (_STATUS, _PARAMS, c_void_p, _ERR),
    "amp_params_drop_masters": (_STATUS, _PARAMS, _ERR),
    "amp_session_create": (_STATUS, _MODEL, _PARAMS, POINTER(amp_session_options), POINTER(_SESSION), _ERR),
    "amp_session_release": (None, _SESSION),
    "amp_step": (_STATUS, _SESSION, POINTER(c_void_p), amp_sizes, c_void_p, _ERR),
    "amp_eval_begin": (_STATUS, _SESSION, _ERR),
    "amp_eval_end": (_STATUS, _SESSION, POINTER(c_double), c_void_p, _ERR),
    "amp_eval": (_STATUS, _SESSION, POINTER(c_void_p), amp_sizes, POINTER(c_double), c_void_p, _ERR),
    "amp_infer": (_STATUS, _SESSION, POINTER(c_void_p), amp_sizes, POINTER(c_void_p), _ERR),
    "amp_session_get_metrics": (_STATUS, _SESSION, c_void_p, _ERR),
    "amp_session_get_losses": (_STATUS, _SESSION, c_void_p, _ERR),
    "amp_session_value_name": (c_char_p, _SESSION, c_int32),
    "amp_session_get_value": (_STATUS, _SESSION, c_char_p, c_void_p, c_void_p, c_size_t, _ERR),
    "amp_session_get_grad_norm": (_STATUS, _SESSION, POINTER(c_double), _ERR),
    "amp_session_kept_state_name": (c_char_p, _SESSION, c_int32, POINTER(c_int64)),
    "amp_session_version": (c_uint64, _SESSION),
    "amp_session_has_shares": (c_int32, _SESSION),
    "amp_session_get_lr": (_STATUS, _SESSION, c_int32, POINTER(c_double), _ERR),
    "amp_session_set_lr": (_STATUS, _SESSION, c_int32, c_double, _ERR),
    "amp_session_get_lr_scale": (_STATUS, _SESSION, c_int32, POINTER(c_double), _ERR),
    "amp_session_set_lr_scale": (_STATUS, _SESSION, c_int32, c_double, _ERR),
    "amp_session_get_scaler": (_STATUS, _SESSION, c_void_p, _ERR),
    "amp_session_set_scaler": (_STATUS, _SESSION, POINTER(amp_scaler_state), _ERR),
    "amp_session_get_moment": (_STATUS, _SESSION, c_char_p, c_void_p, c_size_t, _ERR),
    "amp_session_get_averages": (_STATUS, _SESSION, _PARAMS, _ERR),
    "amp_session_set_moment": (_STATUS, _SESSION, c_char_p, c_void_p, c_size_t, _ERR),
    "amp_checkpoint_save": (_STATUS, _SESSION, c_char_p, c_char_p, _ERR),
    "amp_checkpoint_copy": (_STATUS, _SESSION, _SESSION, _ERR),
    "amp_checkpoint_load": (_STATUS, _SESSION, c_char_p, c_char_p, c_size_t, _ERR),
    "amp_session_get_memory": (None, _SESSION, c_void_p),
    "amp_dataset_create": (_STATUS, _MODEL, POINTER(amp_dataset_options), POINTER(_DATASET), _ERR),
    "amp_dataset_release": (None, _DATASET),
    "amp_dataset_next": (_STATUS, _DATASET, POINTER(POINTER(c_void_p)), POINTER(amp_sizes), _ERR),
    "amp_dataset_seek": (_STATUS, _DATASET, c_int64, _ERR),
    "amp_dataset_position": (c_int64, _DATASET),
}
_AMPC = {
    "amp_compile": (_STATUS, POINTER(amp_compile_options), POINTER(_RESULT), _ERR),
    "amp_compare": (_STATUS, POINTER(amp_compile_options), POINTER(amp_compile_options), POINTER(amp_explain_options),
                    POINTER(_RESULT), _ERR),
    "amp_explain": (_STATUS, POINTER(amp_compile_options), POINTER(amp_explain_options), POINTER(_RESULT), _ERR),
    "amp_onnx_autocast": (_STATUS, c_char_p, POINTER(amp_onnx_options), c_void_p, POINTER(_RESULT), _ERR),
    "amp_onnx_compare": (_STATUS, c_char_p, c_char_p, POINTER(amp_onnx_options), POINTER(_RESULT), _ERR),
    "amp_compile_result_data": (c_void_p, _RESULT, POINTER(c_size_t)),
    "amp_compile_result_release": (None, _RESULT),
}

# ---- the libraries ---------------------------------------------------------------------------------------------------


def _folders():
    here = os.path.dirname(os.path.abspath(__file__))
    yield from filter(None, os.environ.get("AMPC_LIBRARY_PATH", "").split(os.pathsep))
    yield here
    yield os.path.join(here, "..", "..", "..", "lib")  # PREFIX/share/ampc/python


def _open(name, functions):
    names = [f"{name}.so.{SOVERSION}", name + ".so"]
    for folder in _folders():
        found = [os.path.join(folder, file) for file in names if os.path.exists(os.path.join(folder, file))]
        if found:
            return _declare(ctypes.CDLL(os.path.realpath(found[0])), functions)
    for file in names:
        try:
            return _declare(ctypes.CDLL(file), functions)
        except OSError as error:
            cause = error
    folders = ", ".join(map(os.path.normpath, _folders()))
    raise ImportError(f"ampc: {names[0]} is neither in {folders} nor where the system looks ({cause}); set "
                      "AMPC_LIBRARY_PATH to the folder that has it")


def _declare(library, functions):
    for name, (result, *arguments) in functions.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class _Library:
    """libamp or libampc, opened when it is used first."""

    def __init__(self, name, functions):
        self._name, self._functions, self._library = name, functions, None

    def __getattr__(self, function):
        if self._library is None:
            self._library = _open(self._name, self._functions)
        return getattr(self._library, function)


_amp, _ampc = _Library("libamp", _AMP), _Library("libampc", _AMPC)


def version():
    """The version of libamp."""
    return _amp.amp_version().decode()


class Error(RuntimeError):
    """What a call of the library said; `status` is the name of its amp_status, "AMP_NOT_FOUND"."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = STATUS[status] if 0 <= status < len(STATUS) else f"status {status}"


class CompileError(Error):
    """Errors in a model, its policy or IR: the message has them all, `diagnostics` has each, and then the warnings."""

    def __init__(self, status, message, diagnostics):
        super().__init__(status, message)
        self.diagnostics = diagnostics


def _call(function, *arguments, allowed=0):
    """Calls a function whose last parameter is an amp_error."""
    error = amp_error()
    status = function(*arguments, byref(error))
    if status not in (0, allowed):
        raise Error(status, error.message.decode("utf-8", "replace"))
    return status


def _room(struct):
    """A struct for the library to fill, with room for what a later version may add to its end."""
    return struct.from_buffer(bytearray(ctypes.sizeof(struct) + 512))


def _text(value):
    return None if value is None else value.decode()


def _path(path):
    return os.fsencode(path)


def _rules(**lists):
    """Lists of text for amp_weights_options, each ended by NULL; a pair is FROM=TO."""
    for name, rules in lists.items():
        if isinstance(rules, str):
            raise TypeError(f"{name} is a list of text, as [{rules!r}]")
    words = {name: [(rule if isinstance(rule, str) else "=".join(rule)).encode() for rule in rules]
             for name, rules in lists.items()}
    return {name: (c_char_p * (len(rules) + 1))(*rules, None) for name, rules in words.items()}


def _options(struct, **given):
    """An options struct; text is encoded, what is None is left at its default. What a struct that it points to has is
    given in the same way."""
    options = struct(struct_size=ctypes.sizeof(struct))
    parts = {name: kind._type_(struct_size=ctypes.sizeof(kind._type_)) for name, kind in struct._fields_
             if getattr(getattr(kind, "_type_", None), "__name__", "").endswith("_options")}
    places = {field: (part, kind) for part in (options, *parts.values()) for field, kind in part._fields_
              if field != "struct_size" and field not in parts}
    for name, value in given.items():
        if name not in places:
            raise TypeError(f"{struct.__name__} has no '{name}'; it has {', '.join(places)}")
        if value is not None:
            part, kind = places[name]
            value = amp_sizes(*value) if kind is amp_sizes else _path(value) if kind is c_char_p else value
            setattr(part, name, value)
    for name, part in parts.items():
        setattr(options, name, ctypes.pointer(part))
    return options


def _as_dict(struct, leave_out=()):
    return {name: _text(getattr(struct, name)) if kind is c_char_p else getattr(struct, name)
            for name, kind in struct._fields_ if name not in leave_out}


class _Object:
    """A handle of C: released by close(), at the end of `with`, or with the object."""
    _release = ""

    def __init__(self):
        self._pointer = c_void_p()

    @property
    def _handle(self):
        if not self._pointer:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._pointer

    def close(self):
        pointer, self._pointer = getattr(self, "_pointer", None), c_void_p()
        if pointer:
            getattr(_amp, self._release)(pointer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()


# ---- arrays ----------------------------------------------------------------------------------------------------------

Tensor = collections.namedtuple("Tensor", "name dtype shape")
Tensor.__doc__ = "The name, dtype (\"f32\") and shape of an input, result or parameter; \"N\" is the number of samples."


def _info(function, *arguments):
    info = _room(amp_tensor_info)
    _call(function, *arguments, byref(info))
    return info


def _shape(info):
    return tuple(info.dims[:info.rank])


class _Size(str):
    """A dimension that is known at run time, mul * N^n * T^t, as text."""

    def __new__(cls, mul, n, t):
        text = "*".join(["N"] * n + ["T"] * t)
        size = super().__new__(cls, text if mul == 1 else f"{mul}*{text}")
        size.mul, size.n, size.t = mul, n, t
        return size


def _described(function, handle, index, lengths):
    """The tensor with N and T where its dimensions grow with the number of samples, and with the length."""
    unit, most = lengths
    many = 720720  # N / 2, N / 3, ... are whole numbers

    def at(n, t):
        return _shape(_info(function, handle, index, amp_sizes(n, t)))

    info, shape = _info(function, handle, index, amp_sizes(many, unit)), []
    for one, two, long, none in zip(_shape(info), at(2 * many, unit), at(many, most), at(many, 0)):
        n = (two // one).bit_length() - 1
        t = 0 if none else 1 if one * most == long * unit else 2
        shape.append(_Size(fractions.Fraction(one, many ** n * unit ** t), n, t) if n or t else one)
    return Tensor(info.name.decode(), DTYPE_NAMES[info.dtype], tuple(shape))


def _array(value, tensor, what):
    """|value| as a contiguous array of the dtype and rank of |tensor|; says what was wanted where it is none."""
    dtype = np.dtype(DTYPES[DTYPE_NAMES.index(tensor.dtype)])
    wanted = f"{what} '{tensor.name}' is {dtype} of shape ({', '.join(map(str, tensor.shape))})"
    is_array = hasattr(value, "dtype") or hasattr(value, "__array__")
    array = np.asarray(value)
    if array.dtype != dtype:
        if is_array:
            raise TypeError(f"{wanted}; an array of {array.dtype} was given: convert it with .astype(np.{dtype})")
        if not np.can_cast(array.dtype, dtype, "same_kind") or (array.dtype.kind == "i" and dtype.kind == "u"
                                                                and array.size and array.min() < 0):
            raise TypeError(f"{wanted}; {array.dtype} was given")
        array = array.astype(dtype)
    known = [size if isinstance(size, str) else given for size, given in zip(tensor.shape, array.shape)]
    if array.ndim != len(tensor.shape) or known != list(tensor.shape):
        raise ValueError(f"{wanted}; an array of shape {array.shape} was given")
    return np.ascontiguousarray(array).reshape(array.shape)


def _pointers(arrays):
    return (c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))


# ---- model -----------------------------------------------------------------------------------------------------------


class Model(_Object):
    """A compiled model: the path of a model.so, its bytes, or what compile() gave.

    like: a Model; one of equal bytes is that model once more, and takes no memory.
    """
    _release = "amp_model_release"

    def __init__(self, source, name=None, like=None):
        super().__init__()
        pointer = c_void_p()
        if isinstance(source, Compiled):
            source, name = source.data, name or source.name
        if isinstance(source, (bytes, bytearray, memoryview)):
            data = bytes(source)
            options = _options(amp_model_options, bytes=data, size=len(data), like=like and like._handle)
            _call(_amp.amp_model_load, name and _path(name), byref(options), byref(pointer))
        else:
            options = _options(amp_model_options, like=like and like._handle)
            _call(_amp.amp_model_load, _path(source), byref(options), byref(pointer))
        self._pointer = pointer
        info = _room(amp_model_info)
        _amp.amp_model_get_info(pointer, byref(info))
        self.info = collections.namedtuple("ModelInfo", [key for key, _ in amp_model_info._fields_])(**_as_dict(info))
        lengths = (info.length_unit, info.length_most)
        self.inputs = [_described(_amp.amp_model_input_at, pointer, i, lengths) for i in range(info.input_count)]
        self.results = [_described(_amp.amp_model_result_at, pointer, i, lengths) for i in range(info.result_count)]
        params = [_info(_amp.amp_model_param_at, pointer, i) for i in range(info.param_count)]
        self.params = {p.name.decode(): Tensor(p.name.decode(), DTYPE_NAMES[p.dtype], _shape(p)) for p in params}
        self.metrics = [_text(_amp.amp_model_metric_name(pointer, i)) for i in range(info.metric_count)]
        self.losses = [_text(_amp.amp_model_loss_name(pointer, i)) for i in range(info.loss_count)]
        sets = (_amp.amp_model_isa_name(pointer, i) for i in itertools.count())
        self.instruction_sets = [_text(name) for name in itertools.takewhile(bool, sets)]

    def decisions(self):
        """Why each op has its dtype: a dict for each, with path, op, dtype, reason and where it is in the model."""
        for index in range(self.info.decision_count):
            why = _room(amp_decision)
            _call(_amp.amp_model_decision_at, self._handle, index, byref(why))
            yield dict(_as_dict(why), dtype=DTYPE_NAMES[why.dtype])

    def training(self):
        """How each parameter is trained, by its name: a dict with its train block and the groups that decide."""
        facts = {}
        for index, name in enumerate(self.params):
            how = _room(amp_param_training)
            _call(_amp.amp_model_param_training_at, self._handle, index, byref(how))
            facts[name] = dict(_as_dict(how), trained=bool(how.trained))
        return facts

    def index_counts(self):
        """By the name of each input of classes, or of rows of a table: how many it takes, 0 for other inputs."""
        counts, count = {}, c_int64()
        for index, tensor in enumerate(self.inputs):
            _call(_amp.amp_model_get_index_range, self._handle, index, byref(count), None)
            counts[tensor.name] = count.value
        return counts

    def groups(self):
        """The group lines of all train blocks, numbered as Session.set_lr_scale does: a list of dicts."""
        found, group = [], _room(amp_group_info)
        while not _amp.amp_model_group_at(self._handle, len(found), byref(group), None):
            found.append(_as_dict(group))
        return found

    def __repr__(self):
        return f"<ampc.Model {self.info.name}: {self.info.param_elements} numbers, {self.info.policy or 'fp32'}>"


# ---- params ----------------------------------------------------------------------------------------------------------


class Params(_Object, collections.abc.Mapping):
    """The f32 weights of a model, a mapping of names to NumPy arrays (copies; assign to an item to set it)."""
    _release = "amp_params_release"

    def __init__(self, model, seed=0, **options):
        super().__init__()
        pointer = c_void_p()
        settings = _options(amp_params_options, seed=seed, **options)
        _call(_amp.amp_params_create, model._handle, byref(settings), byref(pointer))
        self._pointer, self.model = pointer, model

    def _tensor(self, name):
        try:
            return self.model.params[name]._replace(dtype="f32")
        except KeyError:
            names = ", ".join(self.model.params)
            raise KeyError(f"{self.model.info.name} has no parameter '{name}'; it has {names}") from None

    def __getitem__(self, name):
        array = np.empty(self._tensor(name).shape, np.float32)
        _call(_amp.amp_params_get, self._handle, name.encode(), array.ctypes.data, array.size)
        return array

    def __setitem__(self, name, value):
        array = _array(value, self._tensor(name), "parameter")
        _call(_amp.amp_params_set, self._handle, name.encode(), array.ctypes.data, array.size)

    def update(self, values):
        for name, value in values.items():
            self[name] = value

    def __iter__(self):
        return iter(self.model.params)

    def __len__(self):
        return len(self.model.params)

    __hash__ = object.__hash__

    def __eq__(self, other):
        return self is other

    def load(self, source, ignore=(), rename=(), transpose=(), fresh=(), partial=False, difference=None, ema=False):
        """All of them from a safetensors file, by its path or its bytes, or from the index of several (*.json),
        strictly by name and shape. `rename`: "FROM=TO" rules, or (FROM, TO) pairs, in order; `ignore`: globs of the
        file's names that are not wanted; `transpose`: globs of parameters that the file has the other way round;
        `fresh`: globs of parameters that keep their values; `partial`: what does not fit is left as it is;
        `ema`: of a checkpoint, the averages in place of the parameters.
        `difference(name, kind, why)` is called for each, kind being "missing", "extra", "misfit" or "twice", before
        Error has them all. Gives a WeightsReport."""
        thrown, kinds = [], ["missing", "extra", "misfit", "twice"]

        def call(_, name, kind, why):
            try:
                if difference and not thrown:
                    difference(name.decode(), kinds[kind], _text(why))
            except BaseException as error:  # pylint: disable=broad-except
                thrown.append(error)
        data = bytes(source) if isinstance(source, (bytes, bytearray, memoryview)) else None
        options = _options(amp_weights_options, difference=_DIFFERENCE(call), partial=int(partial), bytes=data,
                           size=len(data or b""), ema=int(ema),
                           **_rules(ignore=ignore, rename=rename, transpose=transpose, fresh=fresh))
        report = amp_weights_report()
        try:
            _call(_amp.amp_params_load, self._handle, None if data else _path(source), byref(options), byref(report))
        finally:
            if thrown:
                raise thrown[0] from None
        return WeightsReport(**_as_dict(report))

    def save(self, path, like=None, ignore=(), rename=(), transpose=(), fresh=()):
        """Writes them; with `like` under the names and in the layout of those weights, which the same rules as in load
        map to the model's: what PyTorch's load_state_dict takes with strict=True."""
        options = _options(amp_weights_options, like=like,
                           **_rules(ignore=ignore, rename=rename, transpose=transpose, fresh=fresh))
        _call(_amp.amp_params_save, self._handle, _path(path), byref(options))

    def assign(self, other):
        """Every value of `other`, which may be of another model."""
        _call(_amp.amp_params_copy, self._handle, other._handle)

    def blend(self, other, t):
        """Each parameter becomes its own + t (other's - its own), and each buffer other's: a target network."""
        _call(_amp.amp_params_blend, self._handle, other._handle, t)

    def snapshot(self):
        """New params with the values of now."""
        pointer = c_void_p()
        _call(_amp.amp_params_snapshot, self._handle, byref(pointer))
        made = Params.__new__(Params)
        made._pointer, made.model = pointer, self.model
        return made

    def count_nonfinite(self):
        """How many numbers are NaN or infinite."""
        count = c_int64()
        _call(_amp.amp_params_count_nonfinite, self._handle, byref(count), None)
        return count.value

    def publish(self):
        """The values of now become what sessions with published=1 read from their next call on; a dict."""
        report = _room(amp_publish_report)
        _call(_amp.amp_params_publish, self._handle, byref(report))
        return _as_dict(report, leave_out=("reserved",))

    def drop_masters(self):
        """For programs that only infer: from here on weights are in memory once, as they were published."""
        _call(_amp.amp_params_drop_masters, self._handle)

# ---- session ---------------------------------------------------------------------------------------------------------

StepReport = collections.namedtuple("StepReport", [key for key, _ in amp_step_report._fields_])
WeightsReport = collections.namedtuple("WeightsReport", [key for key, _ in amp_weights_report._fields_])
WeightsReport.__doc__ = "How many tensors were loaded, of them transposed or rounded from f64, and what was left."
Evaluation = collections.namedtuple("Evaluation", "loss metrics losses")
Evaluation.__doc__ = "Averages over all samples: the loss, the metrics and the named losses by their names."


def _checked_inputs(model, given, named, count):
    """The inputs as arrays, checked; the sizes of the call."""
    wanted = model.inputs[:count]
    names = [tensor.name for tensor in wanted]
    if len(given) > len(wanted):
        raise TypeError(f"{len(given)} inputs were given; wanted are {', '.join(names)}")
    for name in named:
        if name not in names[len(given):]:
            is_double = name in names
            raise TypeError(f"input '{name}' is given twice" if is_double
                            else f"there is no input '{name}'; wanted are {', '.join(names)}")
    missing = [name for name in names[len(given):] if name not in named]
    if missing:
        raise TypeError(f"missing input{'s' if missing[1:] else ''} {', '.join(missing)}")
    values = list(given) + [named[name] for name in names[len(given):]]
    arrays = [_array(value, tensor, "input") for value, tensor in zip(values, wanted)]
    (n, first), (t, second) = _solved(arrays, wanted, "N"), _solved(arrays, wanted, "T")
    for array, tensor, index in zip(arrays, wanted, range(len(wanted))):
        shape = _shape(_info(_amp.amp_model_input_at, model._handle, index, amp_sizes(max(n, 1), t)))
        if array.shape != shape:
            length = f" of T = {t}, as in '{second}'," if t and any(getattr(s, "t", 0) for s in tensor.shape) else ""
            raise ValueError(f"input '{tensor.name}' has shape {array.shape}; {n} samples, as in "
                             f"'{first}',{length} are {shape}")
    return arrays, amp_sizes(n, t)


def _solved(arrays, wanted, letter):
    """N or T, of the first dimension that has nothing but it, and the name of its input."""
    for array, tensor in zip(arrays, wanted):
        for size, given in zip(tensor.shape, array.shape):
            if isinstance(size, _Size) and size.endswith(letter) and size.n + size.t == 1:
                value = fractions.Fraction(given) / size.mul
                if value.denominator != 1 or not value:
                    what = "number of samples" if letter == "N" else "number that T could be"
                    raise ValueError(f"input '{tensor.name}' of shape {array.shape} has no whole {what} above 0")
                return int(value), tensor.name
    return 0, wanted[0].name if wanted else ""


def _locked(method):
    def run(self, *arguments, **named):
        with self._lock:
            return method(self, *arguments, **named)
    run.__name__, run.__doc__ = method.__name__, method.__doc__
    return run


class Session(_Object):
    """Memory and threads to train, evaluate or infer with. Options: the fields of amp_session_options and of
    the structs that it points to: program="infer", keep_values=1, isa="v3", index=1 (of several GPUs).

    `length` is the largest T of calls, if the model declares a size T; 0: the model's. A call has the T of its arrays.
    step takes at most `capacity` samples; evaluate and infer take any number, `capacity` at a time. Inputs are given in
    the model's order, or by their names. log(level, text) is told what the library would like to say, with a level of
    LOG_LEVELS, by the thread that calls the session; it must not use the session.
    """
    _release = "amp_session_release"

    def __init__(self, model, params, capacity=1, log=None, length=0, **options):
        super().__init__()
        pointer = c_void_p()
        self._log = log and _LOG(lambda _, level, text: log(LOG_LEVELS[level], _text(text)))
        settings = _options(amp_session_options, capacity=(capacity, length), log=self._log, **options)
        _call(_amp.amp_session_create, model._handle, params._handle, byref(settings), byref(pointer))
        self._pointer, self.model, self.params, self.capacity = pointer, model, params, capacity
        self._tokens = options.get("tokens", 0)
        self._lock = threading.RLock()

    def _inputs(self, given, named, count):
        return _checked_inputs(self.model, given, named, count)

    def _batches(self, arrays, sizes):
        """(first sample, sizes, inputs) of `capacity` samples at a time."""
        n, most = sizes.n, self.capacity
        if self._tokens and sizes.t:
            most = max(1, min(most, self._tokens // sizes.t))
        for start in range(0, n, most):
            count = min(most, n - start)
            yield start, amp_sizes(count, sizes.t), [
                array[len(array) // n * start:len(array) // n * (start + count)] for array in arrays]

    @_locked
    def step(self, *inputs, **named):
        """One training step; a StepReport. A loss scale at its floor is no exception: report.at_floor."""
        arrays, sizes = self._inputs(inputs, named, len(self.model.inputs))
        report = _room(amp_step_report)
        _call(_amp.amp_step, self._handle, _pointers(arrays), sizes, byref(report), allowed=_SCALE_AT_FLOOR)
        return StepReport(**_as_dict(report))

    @_locked
    def evaluate(self, *inputs, **named):
        """Loss and metrics in evaluation mode, an Evaluation: of all samples, however many fit in a batch."""
        arrays, sizes = self._inputs(inputs, named, len(self.model.inputs))
        loss, metrics = c_double(), np.zeros(len(self.model.metrics))
        _call(_amp.amp_eval_begin, self._handle)
        for _, part, batch in self._batches(arrays, sizes):
            _call(_amp.amp_eval, self._handle, _pointers(batch), part, None, None)
        _call(_amp.amp_eval_end, self._handle, byref(loss), metrics.ctypes.data)
        return Evaluation(loss.value, dict(zip(self.model.metrics, metrics.tolist())),
                          dict(zip(self.model.losses, self._numbers("losses").tolist())))

    @_locked
    def infer(self, *inputs, **named):
        """The result, or a dict of them by name where the model has several."""
        arrays, sizes = self._inputs(inputs, named, self.model.info.model_input_count)
        infos = [_info(_amp.amp_model_result_at, self.model._handle, i, sizes)
                 for i in range(len(self.model.results))]
        results = [np.empty(_shape(info), DTYPES[info.dtype]) for info in infos]
        for start, part, batch in self._batches(arrays, sizes):
            if part.n == sizes.n:
                _call(_amp.amp_infer, self._handle, _pointers(batch), part, _pointers(results))
            else:
                self._infer_part(batch, results, start, part)
        return results[0] if len(results) == 1 else {t.name: r for t, r in zip(self.model.results, results)}

    def _infer_part(self, batch, results, start, sizes):
        infos = [_info(_amp.amp_model_result_at, self.model._handle, i, sizes) for i in range(len(results))]
        parts = [np.empty(_shape(info), result.dtype) for info, result in zip(infos, results)]
        _call(_amp.amp_infer, self._handle, _pointers(batch), sizes, _pointers(parts))
        for tensor, part, result in zip(self.model.results, parts, results):
            if tensor.shape[:1] != ("N",):
                raise ValueError(f"result '{tensor.name}' of shape {tensor.shape} is not one for each sample: infer at "
                                 f"most {self.capacity} samples at once, the session's capacity")
            result[start:start + sizes.n] = part

    def _numbers(self, kind):
        numbers = np.zeros(len(getattr(self.model, kind)))
        if len(numbers):
            _call(getattr(_amp, "amp_session_get_" + kind), self._handle, numbers.ctypes.data)
        return numbers

    @_locked
    def metrics(self):
        """Metrics of the last step by name."""
        return dict(zip(self.model.metrics, self._numbers("metrics").tolist()))

    @_locked
    def losses(self):
        """Named losses of the last step or evaluation."""
        return dict(zip(self.model.losses, self._numbers("losses").tolist()))

    def value_names(self):
        """With keep_values=True: what value() can give."""
        names, index = [], 0
        while name := _text(_amp.amp_session_value_name(self._handle, index)):
            names.append(name)
            index += 1
        return names

    @_locked
    def value(self, name):
        """With keep_values=True: a gradient ("grad.fc1.weight") or an intermediate of the last step."""
        info = _room(amp_tensor_info)
        _call(_amp.amp_session_get_value, self._handle, name.encode(), byref(info), None, 0)
        array = np.empty(_shape(info), np.float32 if info.dtype in _FLOATS else DTYPES[info.dtype])
        _call(_amp.amp_session_get_value, self._handle, name.encode(), None, array.ctypes.data, array.nbytes)
        return array

    @_locked
    def kept_states(self):
        """The states that kept their value, as the new one was not finite, and the iteration of the first time."""
        kept, first = {}, c_int64()
        while name := _amp.amp_session_kept_state_name(self._handle, len(kept), byref(first)):
            kept[name.decode()] = first.value
        return kept

    def grad_norm(self):
        """The norm of all gradients of the last step: with grad_norm=1 or keep_values=1, or where the model clips."""
        norm = c_double()
        _call(_amp.amp_session_get_grad_norm, self._handle, byref(norm))
        return norm.value

    @_locked
    def lr(self, block=0):
        """The learning rate of a train block; if a schedule sets it, the rate of the last step."""
        rate = c_double()
        _call(_amp.amp_session_get_lr, self._handle, block, byref(rate))
        return rate.value

    @_locked
    def set_lr(self, rate, block=0):
        """Sets it for all steps that follow, in place of a schedule; None: back to what the model says."""
        _call(_amp.amp_session_set_lr, self._handle, block, _LR_OF_MODEL if rate is None else rate)

    @_locked
    def lr_scale(self, group):
        """The factor of the model's group line number |group|, counted from 0 over all train blocks."""
        scale = c_double()
        _call(_amp.amp_session_get_lr_scale, self._handle, group, byref(scale))
        return scale.value

    @_locked
    def set_lr_scale(self, group, scale):
        """Sets it for all steps that follow; None: back to what the model says."""
        _call(_amp.amp_session_set_lr_scale, self._handle, group, _LR_OF_MODEL if scale is None else scale)

    def version(self):
        """With published=1: the version of the params that the last call read."""
        return _amp.amp_session_version(self._handle)

    def _state_shape(self, name):
        parameter = name.rpartition("/")[0]
        if parameter not in self.model.params:
            raise KeyError(f"'{name}' is no state of the optimizer: PARAMETER/NAME is wanted, 'fc1.weight/m' say")
        return self.model.params[parameter].shape

    @_locked
    def state(self, name):
        """A state of the optimizer: "fc1.weight/m"."""
        array = np.empty(self._state_shape(name), np.float32)
        _call(_amp.amp_session_get_moment, self._handle, name.encode(), array.ctypes.data, array.size)
        return array

    @_locked
    def averages(self, to):
        """Params `to` get what `ema = ...` of a train block keeps, in place of the parameters."""
        _call(_amp.amp_session_get_averages, self._handle, to._handle)

    @_locked
    def set_state(self, name, value):
        array = _array(value, Tensor(name, "f32", self._state_shape(name)), "state")
        _call(_amp.amp_session_set_moment, self._handle, name.encode(), array.ctypes.data, array.size)

    @_locked
    def scaler(self):
        """The loss scaler and the counters, a dict."""
        state = _room(amp_scaler_state)
        _call(_amp.amp_session_get_scaler, self._handle, byref(state))
        return _as_dict(state, leave_out=("reserved",))

    @_locked
    def set_scaler(self, **fields):
        """Sets what is given, leaves the others."""
        _call(_amp.amp_session_set_scaler, self._handle, byref(amp_scaler_state(**{**self.scaler(), **fields})))

    @_locked
    def save_checkpoint(self, path, extra=None):
        """Everything that training goes on from; `extra` is a text to get back."""
        _call(_amp.amp_checkpoint_save, self._handle, _path(path), None if extra is None else extra.encode())

    @_locked
    def load_checkpoint(self, path, longest_extra=65536):
        """Goes on from there; returns what `extra` was."""
        extra = ctypes.create_string_buffer(longest_extra + 1)
        _call(_amp.amp_checkpoint_load, self._handle, _path(path), extra, len(extra))
        return extra.value.decode()

    @_locked
    def copy_checkpoint(self, other):
        """Goes on where `other` is, which may be of another model with the same parameters and optimizer."""
        _call(_amp.amp_checkpoint_copy, self._handle, other._handle)

    def memory(self):
        """Bytes by kind."""
        info = _room(amp_memory_info)
        _amp.amp_session_get_memory(self._handle, byref(info))
        return _as_dict(info)


# ---- data ------------------------------------------------------------------------------------------------------------


class Dataset(_Object):
    """Batches that fill(index) gives, which a thread calls some batches ahead.

        for batch in dataset: session.step(*batch)

    fill gives the arrays of a batch of at most `capacity` samples, in the model's order or as a dict by their names, or
    None where the data end. What it raises, the iteration raises. Options: first, ahead, tokens and program of
    amp_dataset_options; ahead=-1: no thread.
    """
    _release = "amp_dataset_release"

    def __init__(self, model, fill, capacity=1, length=0, **options):
        super().__init__()
        count = model.info.model_input_count if options.get("program") else len(model.inputs)
        self.model, self._raised, self._tensors = model, [], model.inputs[:count]
        self._fill = _FILL(_filling(model, fill, count, self._raised, options.get("tokens", 0)))
        pointer = c_void_p()
        settings = _options(amp_dataset_options, capacity=(capacity, length), fill=self._fill, **options)
        _call(_amp.amp_dataset_create, model._handle, byref(settings), byref(pointer))
        self._pointer = pointer

    def __iter__(self):
        return self

    def __next__(self):
        arrays, sizes = POINTER(c_void_p)(), amp_sizes()
        try:
            _call(_amp.amp_dataset_next, self._handle, byref(arrays), byref(sizes))
        except Error:
            if self._raised:
                raise self._raised.pop() from None
            raise
        if not sizes.n:
            raise StopIteration
        infos = [_info(_amp.amp_model_input_at, self.model._handle, i, sizes) for i in range(len(self._tensors))]
        return tuple(_copied(arrays[i], info) for i, info in enumerate(infos))

    def seek(self, index):
        """Goes on with batch `index`."""
        _call(_amp.amp_dataset_seek, self._handle, index)

    def position(self):
        """The batch that comes next: for a checkpoint."""
        return _amp.amp_dataset_position(self._handle)


def _copied(address, info):
    array = np.empty(_shape(info), DTYPES[info.dtype])
    ctypes.memmove(array.ctypes.data, address, array.nbytes)
    return array


def _filling(model, fill, count, raised, tokens):
    """The callback of C, which knows no Dataset, so that one is released with its last reference."""
    def call(_, index, addresses, room, sizes, error):
        try:
            given = fill(index)
            if given is None:
                sizes[0] = amp_sizes(0)
                return 0
            by_name = isinstance(given, collections.abc.Mapping)
            one = count == 1 and not isinstance(given, (tuple, list))
            arrays, sizes[0] = _checked_inputs(model, () if by_name else (given,) if one else given,
                                           given if by_name else {}, count)
            n, t = sizes[0].n, sizes[0].t
            if n > room.n or t > room.t or tokens and n * t > tokens:
                return 0  # said by the library
            for address, array in zip(addresses[:count], arrays):
                ctypes.memmove(address, array.ctypes.data, array.nbytes)
            return 0
        except BaseException as problem:  # raised again by the thread that asks
            raised.append(problem)
            error.contents.message = str(problem).encode("utf-8", "replace")[:1000]
            return STATUS.index("AMP_CANCELLED")
    return call


# ---- compiling -------------------------------------------------------------------------------------------------------


class Compiled:
    """What compile() made: `data`, the bytes of a model.so (or C, or IR), and the `warnings`."""

    def __init__(self, data, name, warnings):
        self.data, self.name, self.warnings = data, name, warnings

    def save(self, path):
        with open(path, "wb") as file:
            file.write(self.data)


def _strings(struct_type, pairs):
    """A dict of strings as an array of structs that begin with two."""
    return (struct_type * len(pairs or ()))(*((str(k).encode(), str(v).encode()) for k, v in (pairs or {}).items()))


def _compile_options(defines=None, overrides=None, **options):
    pairs, lines = _strings(amp_define, defines), _strings(amp_override, overrides)
    settings = _options(amp_compile_options, define_count=len(pairs), override_count=len(lines), **options)
    settings.defines, settings.overrides = pairs, lines
    return settings


def _gather(call):
    """call(diagnostic, result, error) is one of the compiler: the bytes it gives and its warnings."""
    said = []
    collect = _DIAGNOSTIC(lambda _, words, is_error: said.append((bool(is_error), words.decode("utf-8", "replace"))))
    result, error, size = c_void_p(), amp_error(), c_size_t()
    status = call(collect, byref(result), byref(error))
    try:
        errors, warnings = ([words for kind, words in said if kind is wanted] for wanted in (True, False))
        if status:
            raise CompileError(status, "".join(errors) or error.message.decode("utf-8", "replace"), errors + warnings)
        data = _ampc.amp_compile_result_data(result, byref(size))
        return ctypes.string_at(data, size.value), warnings
    finally:
        _ampc.amp_compile_result_release(result)


def _run(function, path, text, name, defines, options):
    """The same of a call for a model."""
    if (path is None) == (text is None):
        raise TypeError("either the path of a model or text= is wanted")
    words = None if text is None else text.encode()
    def call(collect, result, error):
        settings = _compile_options(defines, name=name if path is None else path, text_size=len(words or b""),
                                    diagnostic=collect, **options)
        settings.text = words
        return function(byref(settings), result, error)
    return _gather(call)


def compile(path=None, *, text=None, name="model.amp", defines=None, emit="so", progress=None, **options):  # as C does
    """Compiles the model in a file, or `text`, which messages call `name`. Gives a Compiled, or raises CompileError.

    defines: {"HIDDEN": 64}, the model's constants. options: the fields of amp_compile_options, as output="mlp.so",
    precision="bf16", policy="my.policy", isa="v3", target="cpu", stop_after="autocast" (with emit="ir");
    overrides={"fc3": "f32"}: lines of the precision block, besides those that the model has.
    progress(stage, index, count): called before each stage; what it answers ends the call, unless it is None or false.
    """
    if emit not in EMIT:
        raise ValueError(f"emit is one of {', '.join(EMIT)}, not {emit!r}")
    if progress:
        options["progress"] = _PROGRESS(lambda _, stage, index, count: bool(progress(_text(stage), index, count)))
    data, warnings = _run(_ampc.amp_compile, path, text, name, defines, {"emit": EMIT.index(emit), **options})
    return Compiled(data, os.fspath(name if path is None else path), warnings)


def explain(path=None, glob=None, *, text=None, name="model.amp", defines=None, json=False, dtype=None, op=None,
            rule=None, sort=None, batch=0, all=False, **options):
    """What `ampc explain` tells of a model, IR or model.so: text, or with json=True what its JSON says.

    Of the ops whose path matches `glob`, that read or make `dtype`, are an `op` and were decided by `rule`.
    sort="bytes": the ops whose casts move most at `batch` first. all: also ops that only keep a layer's statistics, by
    themselves.
    """
    which = _options(amp_explain_options, path=glob, dtype=dtype, op=op, rule=rule, form=int(json), sort=sort,
                     batch=batch, all=int(all))
    def function(settings, result, error):
        return _ampc.amp_explain(settings, byref(which), result, error)
    said, _ = _run(function, path, text, name, defines, options)
    return _json.loads(said) if json else said.decode()


def compare(before, after, glob=None, *, json=False, dtype=None, op=None, rule=None, before_options=None, **options):
    """What `ampc explain AFTER --against BEFORE` tells of two files: ops whose dtype differs, casts, totals.

    options hold for both, before_options for the first alone: compare("m.amp", "m.amp", before_options={"precision":
    "fp32"}). Which ops: as for explain().
    """
    which = _options(amp_explain_options, path=glob, dtype=dtype, op=op, rule=rule, form=int(json))
    def function(settings, result, error):
        other = _compile_options(**{**options, **(before_options or {}), "name": before})
        other.diagnostic = settings._obj.diagnostic
        return _ampc.amp_compare(byref(other), settings, byref(which), result, error)
    said, _ = _run(function, after, None, None, None, options)
    return _json.loads(said) if json else said.decode()


def autocast(model, output=None, *, keep=(), assume=None, **options):
    """An ONNX model in f16 or bf16, with reasons (docs/onnx.md). Gives what `ampc autocast --json` says, as a dict.

    output: the file to write; without it the dict says what would be written. keep: ops and globs of names of nodes
    that stay in f32. assume: {"value": "float16"}. options: the fields of amp_onnx_options, as precision="bf16",
    policy="torch-fp16", keep_io=True, ranges="ranges.json", force=True.
    """
    kept, types = _rules(keep=keep, assume=[f"{name}={kind}" for name, kind in (assume or {}).items()]).values()
    def call(collect, result, error):
        settings = _options(amp_onnx_options, output=output, json=1, keep_count=len(kept) - 1,
                            assume_count=len(types) - 1, diagnostic=collect, **options)
        settings.keep, settings.assume = kept, types
        return _ampc.amp_onnx_autocast(_path(model), byref(settings), None, result, error)
    return _json.loads(_gather(call)[0])


def compare_onnx(before, after, *, assume=None):
    """What differs between two ONNX models: what `ampc diff BEFORE.onnx AFTER.onnx --json` says, as a dict."""
    types = _rules(assume=[f"{name}={kind}" for name, kind in (assume or {}).items()])["assume"]
    def call(collect, result, error):
        settings = _options(amp_onnx_options, json=1, assume_count=len(types) - 1, diagnostic=collect)
        settings.assume = types
        return _ampc.amp_onnx_compare(_path(before), _path(after), byref(settings), result, error)
    return _json.loads(_gather(call)[0])
