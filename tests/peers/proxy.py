"""litellm's own proxy on loopback, in front of a model server; installed by `build.sh` into an environment of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.doubles.ports import free_port
from tests.peers.servers import binary, wait_until_ready

KEY = "sk-for-tests"

CONFIG = """
model_list:
  - model_name: peer
    litellm_params: {{model: openai/peer, api_base: "{root}/v1", api_key: none}}
  - model_name: limited
    litellm_params: {{model: openai/limited, api_base: "{root}/v1", api_key: none, mock_response: "litellm.RateLimitError"}}
general_settings: {{master_key: {key}}}
router_settings: {{num_retries: 0}}
"""


@contextmanager
def proxy_before(root: str, folder: Path) -> Iterator[str]:
    """The proxy's address without a path. Raises FileNotFoundError where it is not installed."""
    program = binary().with_name("litellm-proxy") / "bin" / "litellm"
    if not program.is_file():
        raise FileNotFoundError("litellm-proxy")
    config = folder / "proxy.yaml"
    config.write_text(CONFIG.format(root=root, key=KEY))
    port = free_port()
    command = [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))},
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_MASTER_KEY": KEY,
        "NO_PROXY": "127.0.0.1,localhost",
    }
    with (folder / "proxy.log").open("wb") as output:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, cwd=folder
        )
    try:
        wait_until_ready(f"http://127.0.0.1:{port}/health/liveliness", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()
