"""ddp.py: training with torch.distributed (gloo) in processes of this machine, under DistributedDataParallel.

    steps, weights = ddp.train(make, make_optimizer, batches, folder, low)

`batches[step][rank]` is what a rank takes in a step. The results are by rank: a dict a step with the loss and, under
|low| (float16), what GradScaler says; and the parameters at the end. |folder| is for files of theirs.
"""
import datetime
import os
import tempfile

import torch
import torch.distributed
import torch.multiprocessing
from torch.nn.parallel import DistributedDataParallel

WAIT = datetime.timedelta(seconds=60)  # for a rank that does not answer
INIT, INTERVAL = 2.0 ** 15, 3          # of the loss scale


class Low(torch.nn.Module):
    """Under DistributedDataParallel, which calls forward alone: the loss with the casts of autocast, written out."""

    def __init__(self, module, low):
        super().__init__()
        self.module, self.low = module, low

    def forward(self, x, targets):
        return self.module.forward_with_casts(x, targets, self.low)


def _step(ddp, optimizer, scaler, batch):
    optimizer.zero_grad()
    loss = ddp(*batch)
    scaler.scale(loss).backward()
    before = scaler.get_scale()
    found = not all(bool(p.grad.isfinite().all()) for p in ddp.parameters())
    scaler.step(optimizer)
    scaler.update()
    return {"loss": loss.item(), "scale": before, "skipped": found, "scale_after": scaler.get_scale(),
            "growth_tracker": scaler._get_growth_tracker() if scaler.is_enabled() else 0}


def _rank(rank, make, make_optimizer, batches, folder, low):
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/ranks", rank=rank,
                                         world_size=len(batches[0]), timeout=WAIT)
    module = make()
    ddp = DistributedDataParallel(Low(module, low) if low else module)
    optimizer = make_optimizer(module.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=INIT, growth_interval=INTERVAL, enabled=low is not None)
    steps = [_step(ddp, optimizer, scaler, batch[rank]) for batch in batches]
    weights = {name: p.detach().clone() for name, p in module.named_parameters()}
    torch.save((steps, weights), os.path.join(folder, f"rank{rank}"))
    torch.distributed.destroy_process_group()


def train(make, make_optimizer, batches, folder, low=None):
    """([steps of rank 0, of rank 1, ..], [weights of rank 0, ..]); each rank of its own process."""
    ranks = len(batches[0])
    for attempt in range(3):
        here = tempfile.mkdtemp(dir=folder)
        try:
            torch.multiprocessing.spawn(_rank, (make, make_optimizer, batches, here, low), nprocs=ranks)
            break
        except torch.multiprocessing.ProcessExitedException:  # gloo aborts now and then while its threads end
            if attempt == 2:
                raise
    folder = here
    saved = [torch.load(os.path.join(folder, f"rank{r}")) for r in range(ranks)]
    return [steps for steps, _ in saved], [weights for _, weights in saved]
