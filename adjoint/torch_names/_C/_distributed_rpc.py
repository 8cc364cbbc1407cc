"""`torch._C._distributed_rpc`: remote calls do not exist here."""


def _is_current_rpc_agent_set() -> bool:
    return False
