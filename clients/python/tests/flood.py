"""Sends SENDS texts, a few at a time, and prints the id of each."""

import os
from concurrent.futures import ThreadPoolExecutor

from paloma_client import Paloma

with Paloma(os.environ["BASE_URL"], os.environ["API_KEY"]) as paloma, ThreadPoolExecutor(4) as threads:
    to = os.environ["TO"]
    for sent in threads.map(lambda n: paloma.send_text(to=to, text=f"number {n}"), range(int(os.environ["SENDS"]))):
        print(sent["messageId"], flush=True)
