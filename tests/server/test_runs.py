"""Runs over HTTP, on a real socket."""


def test_a_run_is_begun_looked_at_and_followed(serve):
    """202 with `Location` at once; the run is there, and its events have numbers."""
    server = serve("--no-key")
    with server.client() as client:
        assert client.get("/health").json()["status"] == "ok"
        begun = client.post("/runs", json={"workflow": "greet", "inputs": {"who": "you"}})
        assert begun.status_code == 202, begun.text
        place = begun.headers["Location"]
        run = client.get(place.removeprefix("/v1"), headers={"Prefer": "wait=30"}).json()
        assert (run["state"], run["output"]) == ("completed", {"text": "hello you"}), server.stderr()
        events = client.get(f"{place.removeprefix('/v1')}/events")
        ids = [int(line[4:]) for line in events.text.splitlines() if line.startswith("id: ")]
        assert ids == list(range(1, len(ids) + 1))
        assert "event: run.ended" in events.text
    assert server.stop() == 0
