"""What the Python programs share: a server for webhooks, and lines of JSON to the check and back."""

import http.server
import json
import os
import sys
import threading
import urllib.parse

CLOUD, KEY, LINE, TO, TOKEN, FILES = (
    os.environ[name] for name in ("CLOUD_URL", "KEY", "LINE", "TO", "VERIFY_TOKEN", "FILES")
)
lock = threading.Lock()


def tell(**line):
    with lock:
        print(json.dumps(line), flush=True)


def listen(challenge, take):
    """`challenge(token, challenge)` and `take(body, signature)` return a text and a status."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
            self.answer(*challenge(query.get("hub.verify_token"), query.get("hub.challenge")))

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            try:
                self.answer(*take(body, self.headers.get("x-hub-signature-256")))
            except Exception as error:
                tell(failed=repr(error), body=body.decode())
                self.answer("failed", 500)

        def answer(self, text, status):
            body = str(text).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    tell(listening=f"http://127.0.0.1:{server.server_port}/")
    return json.loads(sys.stdin.readline())["secret"]


def wait():
    """Serves until the check is done."""
    tell(done=True)
    sys.stdin.read()
