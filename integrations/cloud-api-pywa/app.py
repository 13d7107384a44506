"""A shop's bot for WhatsApp's Cloud API, with pywa: it tells customers where their order is."""

import http.server
import os
import threading
import urllib.parse

import httpx
from pywa import WhatsApp, types
from pywa.errors import WhatsAppError

RETRIES = 3


def make(*, phone_id, token, app_secret, verify_token, graph_url=None):
    """`graph_url` replaces https://graph.facebook.com, for tests."""
    session = httpx.Client(timeout=30)
    app = WhatsApp(
        phone_id=phone_id,
        token=token,
        session=session,
        server=None,
        app_secret=app_secret,
        verify_token=verify_token,
    )
    if graph_url:
        session.base_url = f"{graph_url}/v24.0"

    @app.on_message
    def on_message(app: WhatsApp, message: types.Message):
        if message.type != types.MessageType.TEXT:
            return
        buttons = [types.Button("Track it", "track"), types.Button("Cancel it", "cancel")]
        persist(lambda: app.send_message(message.from_user.wa_id, "What about your order?", buttons=buttons))

    @app.on_callback_button
    def on_button(app: WhatsApp, button: types.CallbackButton):
        answers = {"track": "Your order is on its way.", "cancel": "Your order is cancelled."}
        persist(lambda: app.send_message(button.from_user.wa_id, answers[button.data]))

    return app


def persist(send):
    """Sends, once more if the API has trouble that passes."""
    for left in reversed(range(RETRIES)):
        try:
            return send()
        except WhatsAppError as error:
            if left == 0 or error.code not in (130429, 131000):
                raise


def serve(app, port=0):
    """Serves the webhook; returns the server."""

    class Webhook(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
            self.answer(*app.webhook_challenge_handler(query.get("hub.verify_token"), query.get("hub.challenge")))

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            refusal = app.webhook_update_validator(body, self.headers.get("x-hub-signature-256"))
            self.answer(*(refusal or app.webhook_update_handler(body)))

        def answer(self, text, status):
            body = str(text).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Webhook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    names = ("phone_id", "token", "app_secret", "verify_token")
    server = serve(make(**{name: os.environ[name.upper()] for name in names}), port=8000)
    threading.Event().wait()
