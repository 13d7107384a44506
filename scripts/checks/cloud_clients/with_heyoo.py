import hashlib
import hmac
import json
import os
import tempfile

from heyoo import WhatsApp
from program import CLOUD, FILES, KEY, LINE, TO, TOKEN, listen, tell, wait

app = WhatsApp(KEY, phone_number_id=LINE)
app.base_url = CLOUD + "/v14.0"
app.v15_base_url = CLOUD + "/v15.0"
app.url = f"{app.base_url}/{LINE}/messages"
secret = None


def challenge(token, challenge):
    return (challenge, 200) if token == TOKEN else ("no", 403)


def take(body, signature):
    # The library leaves this to its user.
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(signature, f"sha256={digest}"), signature
    data = json.loads(body)
    if app.changed_field(data) != "messages":
        return "ok", 200
    if not app.is_message(data):
        status = data["entry"][0]["changes"][0]["value"]["statuses"][0]
        tell(status=app.get_delivery(data), id=status["id"], data=status.get("biz_opaque_callback_data"))
        return "ok", 200
    kind = app.get_message_type(data)
    known = dict(id=app.get_message_id(data), sender=app.get_mobile(data), name=app.get_name(data))
    value = None
    if kind == "text":
        value = app.get_message(data)
    elif kind == "interactive":
        answer = app.get_interactive_response(data)
        kind = answer["type"]
        value = answer[kind]["id"]
    elif kind == "location":
        place = app.get_location(data)
        value = f"{place['latitude']},{place['longitude']}"
    elif kind in ("image", "document", "audio", "video"):
        file = getattr(app, f"get_{kind}")(data)
        path = app.download_media(app.query_media_url(file["id"]), file["mime_type"], os.path.join(tempfile.mkdtemp(), "got"))
        value = hashlib.sha256(open(path, "rb").read()).hexdigest()
    tell(got=kind, value=value, **known)
    return "ok", 200


secret = listen(challenge, take)


def sent(kind, answer):
    assert "messages" in answer, answer
    tell(sent=kind, id=answer["messages"][0]["id"])
    return answer["messages"][0]["id"]


def file(name):
    return f"{FILES}/{name}"


text = sent("text", app.send_message("heyoo text ñ😀", TO))
sent("reply", app.reply_to_message(text, TO, "heyoo reply"))
sent("image", app.send_image(file("a.jpg"), TO, caption="heyoo image"))
sent("video", app.send_video(file("a.mp4"), TO, caption="heyoo video"))
sent("document", app.send_document(file("a.pdf"), TO, caption="heyoo document"))
sent("audio", app.send_audio(file("a.mp3"), TO))
sent("sticker", app.send_sticker(file("a.webp"), TO))
image = app.upload_media(os.path.join(os.environ["FOLDER"], "a.jpg"))["id"]
sent("image_by_id", app.send_image(image, TO, caption="heyoo image by id", link=False))
sent("location", app.send_location("41.5", "2.25", "Shop", "Main St", TO))
card = {"name": {"formatted_name": "Bo Li", "first_name": "Bo"}, "phones": [{"phone": "+34600111222", "type": "CELL"}]}
sent("contacts", app.send_contacts([card], TO))
sent("reaction", app.send_reaction("👍", text, TO))
buttons = [{"type": "reply", "reply": {"id": each.lower(), "title": each}} for each in ("Yes", "No")]
sent(
    "buttons",
    app.send_reply_button({"type": "button", "body": {"text": "heyoo buttons?"}, "action": {"buttons": buttons}}, TO),
)
rows = [{"id": "red", "title": "Red", "description": "warm"}, {"id": "blue", "title": "Blue", "description": ""}]
sections = [{"title": "All", "rows": rows}]
sent(
    "list",
    app.send_button(
        {"header": "Paint", "body": "heyoo list?", "footer": "small", "action": {"button": "Colours", "sections": sections}},
        TO,
    ),
)
assert app.delete_media(image)["success"]
tell(checked="media")
wait()
