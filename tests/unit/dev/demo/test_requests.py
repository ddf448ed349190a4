from zerolayer_dev.demo.requests import shown


def test_only_headers_about_the_answer_are_shown() -> None:
    headers = {"Date": "today", "X-Zero-Layer-Revision": "a1", "request-id": "r", "server": "uvicorn"}

    assert shown(headers) == ["X-Zero-Layer-Revision: a1", "request-id: r"]
