"""Prints the golden bytes of tensorboard_test.go, as TensorBoard 2.21 writes them:
pip install tensorboard setuptools. With a directory as argument, prints what TensorBoard reads
from the event files in it instead."""

import os
import struct
import sys
import tempfile

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

if len(sys.argv) > 1:
    from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer

    m = EventMultiplexer().AddRunsFromDirectory(sys.argv[1])
    m.Reload()
    for run, tags in sorted(m.Runs().items()):
        for tag in tags["scalars"]:
            print(run, tag, [(e.step, round(e.value, 4)) for e in m.Scalars(run, tag)])
        for tag in tags["tensors"]:
            print(run, tag, [(e.step, float(e.tensor_proto.float_val[0])) for e in m.Tensors(run, tag)])
    sys.exit()

path = os.path.join(tempfile.mkdtemp(), "events")
at = 1_700_000_000.5
with open(path, "wb") as f:
    w = RecordWriter(f)
    w.write(event_pb2.Event(wall_time=at, file_version="brain.Event:2").SerializeToString())
    s = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="loss", simple_value=0.25), summary_pb2.Summary.Value(tag="std", simple_value=-1.5e-3)])
    w.write(event_pb2.Event(wall_time=at, step=300, summary=s).SerializeToString())
    w.flush()
print(open(path, "rb").read().hex())
