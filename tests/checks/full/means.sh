#!/usr/bin/env bash
# means.sh with every model on the stand-in for a GPU and by every call, and with a step of Adam.
exec tests/checks/means.sh --full
