"""The client against the real sandbox, and through connections that break."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any

from paloma_client import Paloma, PalomaError, WebhookVerificationError, verify_webhook

ROOT = Path(__file__).resolve().parents[3]


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


class BreakingProxy:
    """Breaks each 20th connection: by turns before the request is passed on, and in place of the answer."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self.broken = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        count = 0
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            count += 1
            threading.Thread(target=self._serve, args=(client, count), daemon=True).start()

    def _serve(self, client: socket.socket, count: int) -> None:
        with client:
            if count % 40 == 20:
                self.broken += 1
                return
            with socket.create_connection(("127.0.0.1", self._target)) as server:
                threading.Thread(target=self._copy, args=(client, server), daemon=True).start()
                answer = server.recv(65536)
                if count % 40 == 0:
                    self.broken += 1
                    # Closing alone does not reach the client while the other thread reads from it.
                    client.shutdown(socket.SHUT_RDWR)
                    return
                while answer:
                    client.sendall(answer)
                    answer = server.recv(65536)

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass

    def close(self) -> None:
        self._server.close()


class ClientTest(unittest.TestCase):
    box: dict[str, Any]

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        process = subprocess.Popen(
            ["deno", "run", "-A", "main.ts", "sandbox", "--json", "--port", str(free_port()), "--data-dir", folder.name],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        assert process.stdout
        cls.addClassCleanup(process.stdout.close)
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.kill)
        cls.box = json.loads(process.stdout.readline())

    def client(self) -> Paloma:
        client = Paloma(self.box["baseUrl"], self.box["apiKey"])
        self.addCleanup(client.close)
        return client

    def text(self, text: str) -> dict[str, Any]:
        return {"sessionId": self.box["sessionId"], "to": "4915550100002", "text": text}

    def test_refusals_have_a_code(self) -> None:
        with self.assertRaises(PalomaError) as caught:
            self.client().send("text", {"nonsense": 1})
        self.assertEqual(caught.exception.status, 400)
        self.assertNotEqual(caught.exception.code, "unknown")

    def test_events_resume(self) -> None:
        client = self.client()
        first = next(client.events())
        second = next(client.events(first["id"]))
        self.assertGreater(second["id"], first["id"])

    def test_each_send_once_through_broken_connections(self) -> None:
        port = int(self.box["baseUrl"].split(":")[2].split("/")[0])
        proxy = BreakingProxy(port)
        self.addCleanup(proxy.close)
        before = self.client().request("GET", "/messages/history")["pagination"]["total"]
        ids = set()
        for number in range(80):
            with Paloma(f"http://127.0.0.1:{proxy.port}/v1", self.box["apiKey"]) as client:
                answer = client.send("text", self.text(f"number {number}"))
                ids.add(json.dumps(answer, sort_keys=True))
        self.assertGreaterEqual(proxy.broken, 4)
        self.assertEqual(len(ids), 80)
        self.assertEqual(self.client().request("GET", "/messages/history")["pagination"]["total"] - before, 80)


class WebhookTest(unittest.TestCase):
    body = b'{"event":"message.received"}'
    old, new = ("whsec_" + base64.b64encode(bytes([n]) * 32).decode() for n in (1, 2))

    def plain(self, secret: str) -> str:
        return hmac.new(secret.encode(), self.body, hashlib.sha256).hexdigest()

    def standard(self, secret: str, at: int) -> dict[str, str]:
        key = base64.b64decode(secret[6:])
        digest = hmac.new(key, f"evt_1.{at}.".encode() + self.body, hashlib.sha256).digest()
        signature = "v1,AAAA v1," + base64.b64encode(digest).decode()
        return {"Webhook-Id": "evt_1", "webhook-timestamp": str(at), "webhook-signature": signature}

    def test_both_families_and_both_secrets(self) -> None:
        headers = {"X-Webhook-Signature": self.plain(self.new), "x-webhook-signature-previous": self.plain(self.old)}
        for secret in (self.old, self.new, [self.new, self.old]):
            self.assertEqual(verify_webhook(self.body, headers, secret)["event"], "message.received")
        now = int(time.time())
        self.assertEqual(verify_webhook(self.body, self.standard(self.old, now), [self.new, self.old])["event"], "message.received")
        for bad in ({}, self.standard(self.old, now - 3600), {"x-webhook-signature": self.plain("whsec_AAAA")}):
            with self.assertRaises(WebhookVerificationError):
                verify_webhook(self.body, bad, [self.new, self.old])


if __name__ == "__main__":
    unittest.main()
