"""The tasks that the worker of compose.yaml runs. In its container:

python -c "import shop; shop.resize.enqueue('cat.png', width=200)"
"""

from emq_native import App, exponential

app = App()  # the node that $EMQ_URL names


@app.task(retries=3, backoff=exponential(1.0), timeout=30)
def resize(path: str, width: int) -> None:
    print("resized", path, "to", width)
