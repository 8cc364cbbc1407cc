"""Types of functions of tensors. Written by scripts/write_type_stubs.py; do not edit."""



from adjoint import *
from adjoint.dispatch.decorators import PUBLIC as PUBLIC
from adjoint.dispatch.declaration import OPERATORS as OPERATORS
from adjoint.dispatch.registry import load_all as load_all
from adjoint.dispatch.source import SOURCES as SOURCES
from adjoint.operators.tensor_methods import TensorMethods as TensorMethods

