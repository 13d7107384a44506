"""Tests the bot against the emulated Cloud API: `python -m unittest`. `PALOMA` is the command, `paloma` by default."""

import json
import os
import shlex
import subprocess
import time
import unittest

import app
import httpx

CUSTOMER = "447700900002"


class BotTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        command = shlex.split(os.environ.get("PALOMA", "paloma")) + ["sandbox", "--cloud", "--json"]
        env = {**os.environ, "PALOMA_PORT": "0", "PALOMA_SANDBOX_PORT": "0"}
        cls.sandbox = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        cls.ready = ready = json.loads(cls.sandbox.stdout.readline())
        cls.bot = app.make(
            phone_id=ready["phoneNumberId"],
            token=ready["accessToken"],
            app_secret=ready["appSecret"],
            verify_token=ready["verifyToken"],
            graph_url=ready["cloudUrl"],
        )
        cls.server = app.serve(cls.bot)
        webhook = {
            "override_callback_uri": f"http://127.0.0.1:{cls.server.server_port}/",
            "verify_token": ready["verifyToken"],
        }
        url = f"{ready['cloudUrl']}/v24.0/{ready['businessAccountId']}/subscribed_apps"
        httpx.post(url, json=webhook, headers={"authorization": f"Bearer {ready['accessToken']}"}).raise_for_status()

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()
        cls.sandbox.terminate()
        cls.sandbox.wait()
        cls.sandbox.stdout.close()

    def control(self, method, path, **body):
        answer = httpx.request(method, self.ready["controlUrl"] + path, json=body or None)
        answer.raise_for_status()
        return answer.json()

    def write(self, text):
        self.control("POST", f"/phones/{CUSTOMER}/messages", to=self.ready["phoneNumberId"], text=text)

    def arrives(self, text, times=1):
        """Waits until the customer's phone shows the text so many times."""
        for _ in range(200):
            inbox = self.control("GET", f"/phones/{CUSTOMER}/messages")
            if sum(text in (message["text"] or "") for message in inbox) >= times:
                return
            time.sleep(0.05)
        self.fail(f"{text!r} did not arrive {times} times")

    def test_1_nothing_is_sent_before_the_customer_writes(self):
        with self.assertRaises(app.WhatsAppError) as caught:
            self.bot.send_message(CUSTOMER, "Buy something!")
        self.assertEqual(caught.exception.code, 131047)

    def test_2_a_customer_tracks_an_order(self):
        self.write("is my order ready?")
        self.arrives("What about your order?")
        self.write("1")
        self.arrives("Your order is on its way.")

    def test_3_the_bot_outlasts_a_rate_limit(self):
        self.control("POST", "/faults", line=self.ready["phoneNumberId"], kind="cloud_error", code=130429, count=2)
        self.write("Track it")
        self.arrives("Your order is on its way.", times=2)

    def test_4_what_comes_twice_is_answered_once(self):
        self.control("POST", "/faults", line=self.ready["phoneNumberId"], kind="webhook_twice")
        self.write("Cancel it")
        self.arrives("Your order is cancelled.")
        self.write("and now?")
        self.arrives("What about your order?", times=2)
        inbox = self.control("GET", f"/phones/{CUSTOMER}/messages")
        self.assertEqual(sum(message["text"] == "Your order is cancelled." for message in inbox), 1)


if __name__ == "__main__":
    unittest.main()
