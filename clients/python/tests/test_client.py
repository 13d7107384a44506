"""The client against a real gateway: scripts/checks/clients.ts starts it and says in the environment where it is."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import resource
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

import httpx

from paloma_client import EventGapError, Paloma, PalomaError, WebhookVerificationError, verify_webhook

URL, KEY, TO, CONTROL = (os.environ[name] for name in ("BASE_URL", "API_KEY", "TO", "CONTROL_URL"))
# Answers as a gateway does that is busy or has forgotten events; the paths are in scripts/checks/clients.ts.
SCRIPTED = os.environ["SCRIPTED_URL"]


def arrival(**wanted: Any) -> dict[str, Any]:
    """Waits until the phone has such a message."""
    for _ in range(600):
        for message in httpx.get(f"{CONTROL}/phones/{TO}/messages").json():
            if all(message.get(name) == value for name, value in wanted.items()):
                found: dict[str, Any] = message
                return found
        time.sleep(0.05)
    raise AssertionError(f"the phone has no message with {wanted}")


class ClientTest(unittest.TestCase):
    def setUp(self) -> None:
        self.paloma = Paloma(URL, KEY)
        self.addCleanup(self.paloma.close)

    def scripted(self, script: str) -> Paloma:
        client = Paloma(f"{SCRIPTED}/{script}/{self.id()}/v1", KEY)
        self.addCleanup(client.close)
        return client

    def test_a_text_arrives(self) -> None:
        self.paloma.send_text(to=TO, text="from Python")
        arrival(text="from Python")

    def test_another_kind_arrives(self) -> None:
        self.paloma.send("location", {"to": TO, "latitude": 51.5, "longitude": -0.1})
        self.assertEqual(arrival(type="locationMessage")["location"]["latitude"], 51.5)

    def test_a_refusal_has_status_code_and_problem(self) -> None:
        with self.assertRaises(PalomaError) as caught:
            self.paloma.send_text(to=TO, text="")
        self.assertEqual((caught.exception.status, caught.exception.code), (400, "validation_failed"))
        self.assertEqual(caught.exception.problem["errors"][0]["path"], "text")

    def test_a_large_file_is_a_stream(self) -> None:
        with tempfile.NamedTemporaryFile(suffix=".bin") as file:
            digest = hashlib.sha256()
            for _ in range(24):
                part = os.urandom(1 << 20)
                file.write(part)
                digest.update(part)
            file.flush()
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            self.paloma.send_file(file.name, to=TO, caption="large")
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        self.assertLess(grown, 8 * 1024, "KiB more in memory, for a file of 24 MiB")
        message = arrival(caption="large")
        self.assertEqual(message["sha256"], digest.hexdigest())

    def test_events_resume(self) -> None:
        first = self.paloma.send_text(to=TO, text="event one")
        second = self.paloma.send_text(to=TO, text="event two")
        seen: dict[str, str] = {}
        cursor = None
        # A new iterator for each event, as after a restart.
        while second["messageId"] not in seen:
            event = next(self.paloma.events(cursor, types=["message.sent"], poll=0.05))
            assert event["event"] == "message.sent"
            self.assertNotIn(event["data"]["messageId"], seen)
            cursor = seen[event["data"]["messageId"]] = event["id"]
        self.assertLess(seen[first["messageId"]], seen[second["messageId"]])

    def test_a_gap_is_told(self) -> None:
        with self.assertRaises(EventGapError) as caught:
            next(self.scripted("gap").events("evt_1"))
        self.assertEqual(caught.exception.cursor, "evt_1")

    def test_retry_after_is_kept_with_the_same_key(self) -> None:
        begin = time.monotonic()
        answer = self.scripted("busy").request("POST", "/echo", json={})
        self.assertGreaterEqual(time.monotonic() - begin, 1)
        self.assertEqual(len(answer["keys"]), 2)
        self.assertEqual(len(set(answer["keys"])), 1)

    def test_a_quota_of_hours_is_not_waited_for(self) -> None:
        with self.assertRaises(PalomaError) as caught:
            self.scripted("quota").request("POST", "/echo", json={})
        self.assertEqual((caught.exception.status, caught.exception.code), (429, "quota_exceeded"))


class WebhookTest(unittest.TestCase):
    """With requests that the gateway sent while two secrets were valid."""

    def setUp(self) -> None:
        got = json.loads(Path(os.environ["WEBHOOK"]).read_text())
        self.body = base64.b64decode(got["body"])
        self.headers: dict[str, str] = got["headers"]
        self.secrets: list[str] = got["secrets"]
        self.plain = {name: value for name, value in self.headers.items() if name.startswith("x-webhook-")}

    def test_either_header_and_either_secret(self) -> None:
        for headers in (self.headers, self.plain, {name.title(): value for name, value in self.headers.items()}):
            for secrets in (self.secrets[0], self.secrets[1], self.secrets):
                self.assertEqual(verify_webhook(self.body, headers, secrets)["event"], "webhook.test")

    def test_everything_else_is_refused(self) -> None:
        late = {**self.headers, "webhook-timestamp": str(int(time.time()) - 3600)}
        for body, headers, secrets in (
            (self.body + b" ", self.headers, self.secrets),
            (self.body + b" ", self.plain, self.secrets),
            (self.body, {}, self.secrets),
            (self.body, late, self.secrets),
            (self.body, self.headers, "whsec_" + base64.b64encode(bytes(32)).decode()),
            (self.body, self.plain, []),
        ):
            with self.assertRaises(WebhookVerificationError):
                verify_webhook(body, headers, secrets)

    def test_a_request_of_long_ago_is_refused(self) -> None:
        with self.assertRaises(WebhookVerificationError):
            verify_webhook(self.body, self.headers, self.secrets, tolerance=-1)


if __name__ == "__main__":
    unittest.main()
