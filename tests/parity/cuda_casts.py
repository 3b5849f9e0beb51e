"""cuda_casts.py: the casts that PyTorch's autocast inserts on CUDA, made on the CPU, to compare its numbers.

The classes are the oracle's (tests/parity/oracle), for the ops of the twins: products lower their floats, norms
read f32, everything else takes what it gets, by PyTorch's own promotion.  The log_softmax inside cross_entropy stays in
the low type, and nll_loss reads f32.  Casts of parameters are kept for the pass, casts of other tensors are not.
"""
import torch
import torch.nn.functional as F

LOWER = {F.linear, F.conv2d, F.conv_transpose2d, F.scaled_dot_product_attention, torch.matmul, torch.Tensor.matmul,
         torch.Tensor.__matmul__, torch.bmm}
IN_F32 = {F.layer_norm, F.rms_norm, F.group_norm, torch.exp, torch.log, torch.rsqrt, torch.pow, torch.Tensor.pow,
          F.mse_loss, F.binary_cross_entropy_with_logits, F.softplus, torch.sum, torch.Tensor.sum}


class CudaCasts(torch.overrides.TorchFunctionMode):
    def __init__(self, low):
        super().__init__()
        self.low, self.kept = low, {}

    def cast(self, value, dtype):
        if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.dtype == dtype:
            return value
        if not (value.is_leaf and value.requires_grad):
            return value.to(dtype)
        key = id(value), dtype
        if key not in self.kept:
            self.kept[key] = value.to(dtype)
        return self.kept[key]

    def all_cast(self, args, kwargs, dtype):
        return [self.cast(a, dtype) for a in args], {name: self.cast(a, dtype) for name, a in kwargs.items()}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is F.cross_entropy:
            if kwargs.pop("label_smoothing", 0.0):
                raise NotImplementedError("cross_entropy with label smoothing")
            return F.nll_loss(F.log_softmax(args[0], dim=-1).float(), *args[1:], **kwargs)
        if func in LOWER:
            args, kwargs = self.all_cast(args, kwargs, self.low)
        elif func in IN_F32:
            args, kwargs = self.all_cast(args, kwargs, torch.float32)
        return func(*args, **kwargs)
