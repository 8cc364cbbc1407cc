"""`step` runs a backward in a terminal, node by node."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from .._runtime.tracebacks import frame_of_caller
from ..tape.node import Node
from ..tensor import Tensor, wrap
from .model import NodeBox, Step
from .snapshot import Walk
from .tracing import Trace, Tracer, leaf_names, results, run, walk_of

PROMPT = "(step) "
HELP = """\
n        run this node and stop at the next (so does an empty line)
c        run on to the next breakpoint, or to the end
b NODE   stop before a node: its name, its id, a leaf, a module, a line (train.py:12); without NODE, list the breakpoints
p        print the gradients that have arrived, and what the node has saved, in full
p NODE   print the details of another node, or the gradient of a leaf
q        run to the end without stopping again
"""


def step(
    tensors: Any,
    gradient: Any = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
    params: Any = None,
    commands: TextIO | None = None,
    output: TextIO | None = None,
) -> Trace:
    r"""Run `backward`, and stop before each node for a command: `n`, `c`, `b NODE`, `p`, `q`, or `h` for help.

    Args:
        tensors, gradient, retain_graph, create_graph, inputs: as in `adjoint.autograd.backward`.
        params: the names of parameters, as for `graph`.
        commands: a file with one command per line; the terminal by default. At the end of the file, backward continues.
        output: the file to write to; standard output by default.

    Return the trace of all steps.

    >>> import io
    >>> import adjoint as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> trace = torch.inspect.step((w * 3).sum(), commands=io.StringIO("b w\nc\n"))
    3 nodes; h for help
    SumBackward0 n3 ...
      arrives: 1
    (step) b w
    (step) c
      → MulBackward0 n2 (self)  [1, 1]
    MulBackward0 n2 ...
      arrives: [1, 1]
      → w (self)  [3, 3]
      freed other
    AccumulateGrad n1  w
      arrives: [3, 3]
    (step)
      w.grad = [3, 3]
    """
    walk = walk_of(tensors, params, frame_of_caller(), "step")
    stepper = Stepper(walk, commands, output if output is not None else sys.stdout)
    stepper.write(f"{len(walk.picture.nodes)} nodes; h for help")
    return run(stepper, tensors, gradient, retain_graph, create_graph, inputs)


class Stepper(Tracer):
    """A tracer that stops at nodes."""

    def __init__(self, walk: Walk, commands: TextIO | None, output: TextIO) -> None:
        super().__init__(walk)
        self.commands = commands
        self.output = output
        self.stopping = True
        self.asking = True
        self.breakpoints: dict[str, set[str]] = {}
        """The nodes of each breakpoint, by the text of its command."""
        self.names = leaf_names(self.picture.tensors)

    def write(self, text: str) -> None:
        """Write a line."""
        self.output.write(text + "\n")

    def arrived(self, step: Step, node: Node, grad: Any) -> None:
        """Show the incoming gradients, and ask for a command."""
        box = self.boxes[step.node]
        self.write(self._heading(box))
        self.write(f"  arrives: {', '.join(flow.data or 'none' for flow in step.incoming)}")
        at_breakpoint = any(box.id in nodes for nodes in self.breakpoints.values())
        while self.asking and (self.stopping or at_breakpoint):
            word, _, rest = self._read().strip().partition(" ")
            if word in ("", "n"):
                self.stopping = True
                break
            if word in ("c", "q"):
                self.stopping = False
                self.asking = word == "c"
                break
            if word == "b":
                self._set_breakpoint(rest.strip())
            elif word == "p":
                self._print(rest.strip(), box, grad)
            else:
                self.write(HELP.rstrip() if word == "h" else f"{word}: no such command; h for help")

    def done(self, step: Step) -> None:
        """Show the results of the step."""
        for line in results(step, self.boxes, self.names):
            self.write(f"  {line}")

    def _read(self) -> str:
        if self.commands is None:
            try:
                return input(PROMPT)
            except EOFError:
                return "q"
        self.output.write(PROMPT)
        line = self.commands.readline()
        self.write(line.rstrip("\n"))
        return line or "q"

    def _heading(self, box: NodeBox) -> str:
        if box.accumulate:
            return f"{box.name} {box.id}  {self.names[box.id]}"
        where = f"  {box.line.place}  {box.line.text}" if box.line is not None else ""
        return f"{box.name} {box.id}{where}".rstrip()

    def _set_breakpoint(self, words: str) -> None:
        if not words:
            self.write("\n".join(self.breakpoints) or "no breakpoints")
            return
        nodes = self._called(words)
        if nodes:
            self.breakpoints[words] = {node.id for node in nodes}
        else:
            self.write(f"{words}: no such node")

    def _called(self, words: str) -> list[NodeBox]:
        """Return the nodes that `words` names."""
        return [node for node in self.picture.nodes if words in self._names_of(node)]

    def _names_of(self, node: NodeBox) -> set[str]:
        names = {node.id, node.name}
        if node.accumulate:
            names.add(self.names[node.id])
        if node.module is not None:
            names.add(node.module)
        if node.line is not None:
            names |= {f"{node.line.place}", f"{node.line.file}:{node.line.number}"}
        return names

    def _print(self, words: str, box: NodeBox, grad: Any) -> None:
        if words:
            nodes = self._called(words)
            self.write("\n".join(line for node in nodes for line in self._known(node)) or f"{words}: no such node")
            return
        for number, each in enumerate(grad if type(grad) is list else [grad]):
            value = each if isinstance(each, Tensor) or each is None else wrap(each)
            self.write(f"gradient of output {number}: {value}")
        self.write("\n".join(self._known(box)[1:]))

    def _known(self, box: NodeBox) -> list[str]:
        lines = [self._heading(box)]
        lines += [
            f"saved {saved.name}: {saved.dtype}{saved.shape} {saved.data or ''} ({saved.state})"
            for saved in box.saved
            if saved.state != "none"
        ]
        lines += [f"{name} = {value}" for name, value in box.values.items()]
        lines += [f"hook: {hook.when}, {hook.text}" for hook in box.hooks]
        for source in box.formula.values():
            lines += source.splitlines()
        accumulated = [each.accumulated for each in self.picture.steps if each.node == box.id]
        lines += [f"{self.names[box.id]}.grad = {accumulated[-1]}"] if accumulated and box.accumulate else []
        return lines
