"""Promises, deliveries and the channels they go by, over HTTP."""

from tests.server.service import frames, wait_until
from tests.server.test_conversations import finished, say, talk


def promised(client, talk_id):
    """What the agent said of what it could promise: capability, outcome, id."""
    return finished(client, talk_id)["messages"][-1]["text"].split()


def test_a_promise_over_http_is_stored(serve):
    """STORE: 202 with `Retry-After` while the work goes on, 200 at its end, a delivery to acknowledge; 404 for others."""
    server = serve("app:server")
    with server.client() as client:
        talk_id = talk(client, "promiser")
        say(client, talk_id, "go", run=True)
        capability, outcome, promise_id = promised(client, talk_id)
        assert (capability, outcome) == ("STORE", "Stored")
        open_one = client.get(f"/promises/{promise_id}")
        assert (open_one.status_code, open_one.headers["Retry-After"]) == (202, "1")
        (server.folder / "go").touch()
        done = wait_until(
            lambda: (
                (now := client.get(f"/promises/{promise_id}", headers={"Prefer": "wait=5"})).status_code == 200 and now
            )
        )
        assert done.json()["state"] == "done"
        listed = client.get("/promises", params={"session": talk_id}).json()["data"]
        assert [one["id"] for one in listed] == [promise_id]
        (owed,) = client.get("/deliveries", params={"session": talk_id}).json()["data"]
        assert owed["state"] == "stored"
        assert client.get(f"/deliveries/{owed['id']}").json()["promise"] == promise_id
        assert client.post(f"/deliveries/{owed['id']}/ack").json()["is_new"] is True
        assert client.post(f"/deliveries/{owed['id']}/ack").json()["is_new"] is False
        assert client.get("/promises/never").json()["error"]["code"] == "promise_not_found"
        assert client.post("/deliveries/never/ack").status_code == 404
        assert client.post(f"/promises/{promise_id}/cancel").status_code == 202


def test_a_stream_is_told_and_what_it_does_not_acknowledge_is_owed_again(serve):
    """What was stored is offered to whoever opens the stream; without an acknowledgement it goes back."""
    server = serve("app:server")
    with server.client() as client:
        talk_id = talk(client, "promiser")
        say(client, talk_id, "go", run=True)
        promise_id = promised(client, talk_id)[2]
        (server.folder / "go").touch()

        def delivery():
            with server.client() as mine, mine.stream("GET", f"/conversations/{talk_id}/events") as stream:
                text = ""
                for chunk in stream.iter_text():
                    text += chunk
                    told = [one for one in frames(text[: text.rindex("\n\n") + 2]) if one[1] == "delivery"]
                    if told:
                        return told[0]
            return None

        number, _, first = delivery()
        assert first["promise"] == promise_id
        assert number > 0
        wait_until(
            lambda: client.get(f"/deliveries/{first['id']}").json()["state"] in ("stored", "due"), "it is owed again"
        )
        assert delivery()[2]["id"] == first["id"]
        assert client.post(f"/deliveries/{first['id']}/ack").json()["is_new"] is True
        assert client.get("/deliveries", params={"session": talk_id}).json()["data"] == []


def test_a_job_is_looked_at(serve):
    """There are none, and none can be started from here."""
    server = serve("app:server")
    with server.client() as client:
        talk_id = talk(client, "parrot")
        assert client.get("/jobs", params={"session": talk_id}).json() == {"data": [], "next": None}
        for noun in ("jobs", "promises"):
            refused = client.get(f"/{noun}", params={"session": talk_id, "before": "nonsense"})
            assert (refused.status_code, "not a cursor" in refused.text) == (400, True)
        assert client.get("/jobs/never").status_code == 404
        assert client.post("/jobs", json={"command": "true"}).status_code == 405
