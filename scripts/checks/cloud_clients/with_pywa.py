import datetime
import hashlib
import os

import httpx
from program import CLOUD, FILES, KEY, LINE, TO, TOKEN, listen, tell, wait

import pywa
from pywa import WhatsApp, types

app = None


def take(body, signature):
    refusal = app.webhook_update_validator(body, signature)
    return refusal or app.webhook_update_handler(body)


session = httpx.Client(timeout=30)
options = dict(phone_id=LINE, token=KEY, session=session, server=None, verify_token=TOKEN, waba_id=LINE)
before = WhatsApp(phone_id=LINE, token=None, server=None, verify_token=TOKEN, validate_updates=False)
secret = listen(lambda token, challenge: before.webhook_challenge_handler(token, challenge), take)
app = WhatsApp(**options, app_secret=secret, skip_duplicate_updates=True)
session.base_url = CLOUD + "/v23.0"


def value_of(message):
    kind = message.type
    if kind == "text":
        return message.text
    if kind in ("image", "document", "audio", "video", "sticker"):
        content = message.media.get_bytes()
        return hashlib.sha256(content).hexdigest()
    if kind == "location":
        return f"{message.location.latitude},{message.location.longitude}"
    if kind == "contacts":
        return message.contacts[0].name.formatted_name
    if kind == "reaction":
        return message.reaction.emoji
    if kind == "unsupported":
        return str(message.error.code)
    raise ValueError(kind)


def person(update):
    return dict(sender=update.from_user.wa_id, name=update.from_user.name, user=update.from_user.bsuid)


@app.on_message
def _(_, message):
    reply = message.reply_to_message.id if message.reply_to_message else None
    if message.type == "text" and message.text.startswith("to "):
        # Names the person by user id.
        tell(answered=message.reply("pywa answers").id)
    tell(got=str(message.type.value), value=value_of(message), id=message.id, context=reply, **person(message))


@app.on_callback_button
def _(_, button):
    kind = "button" if button.type == "button" else "button_reply"
    tell(got=kind, value=button.data, id=button.id, context=button.reply_to_message.id, **person(button))


@app.on_callback_selection
def _(_, row):
    tell(got="list_reply", value=row.data, id=row.id, context=row.reply_to_message.id, **person(row))


@app.on_message_status
def _(_, status):
    error = status.error.code if status.error else None
    tell(status=str(status.status.value), id=status.id, data=status.tracker, error=error, recipient=status.from_user.wa_id)


@app.on_outgoing_message
def _(_, message):
    tell(got="echo", value=message.text, id=message.id)


def sent(kind, message):
    tell(sent=kind, id=message.id)


def file(name):
    return f"{FILES}/{name}"


def local(name):
    return open(os.path.join(os.environ["FOLDER"], name), "rb").read()


text = app.send_message(TO, "pywa text ñ😀", tracker="order 7")
sent("text", text)
sent("reply", app.send_message(TO, "pywa reply", reply_to_message_id=text.id))
sent("image", app.send_image(TO, file("a.jpg"), caption="pywa image"))
sent("video", app.send_video(TO, file("a.mp4"), caption="pywa video"))
sent("document", app.send_document(TO, file("a.pdf"), filename="bill.pdf", caption="pywa document"))
sent("audio", app.send_audio(TO, file("a.mp3")))
sent("voice", app.send_voice(TO, file("a.ogg")))
sent("sticker", app.send_sticker(TO, file("a.webp")))
sent("image_by_id", app.send_image(TO, local("a.jpg"), caption="pywa image by id", mime_type="image/jpeg"))
sent("document_by_id", app.send_document(TO, local("a.pdf"), filename="id.pdf", mime_type="application/pdf"))
sent("location", app.send_location(TO, 41.5, 2.25, name="Shop", address="Main St"))
contact = types.Contact(
    name=types.Contact.Name(formatted_name="Bo Li", first_name="Bo"),
    phones=[types.Contact.Phone(phone="+34600111222", type="CELL")],
)
sent("contacts", app.send_contact(TO, contact))
sent("reaction", app.send_reaction(TO, emoji="👍", message_id=text.id))
buttons = [types.Button("Yes", "yes"), types.Button("No", "no")]
sent("buttons", app.send_message(TO, "pywa buttons?", footer="small", buttons=buttons))
rows = [types.SectionRow("Red", "red", description="warm"), types.SectionRow("Blue", "blue")]
choice = types.SectionList("Colours", sections=[types.Section("All", rows=rows)])
sent("list", app.send_message(TO, "pywa list?", buttons=choice))
sent("link", app.send_message(TO, "pywa link", buttons=types.URLButton("Shop", "https://example.com/pywa")))

# What is asked beside messages.
uploaded = app.upload_media(local("a.pdf"), mime_type="application/pdf", filename="up.pdf")
found = app.get_media_url(uploaded.id)
assert found.mime_type == "application/pdf", found
assert app.get_media_bytes(found.url) == local("a.pdf")
assert app.delete_media(uploaded.id).success
number = app.get_business_phone_number()
assert number.display_phone_number.lstrip("+") == LINE, number
assert [each.id for each in app.get_business_phone_numbers()] == [LINE]
assert app.get_business_profile() is not None
assert app.block_users(["34600111333"]).added_users
assert app.unblock_users(["34600111333"]).removed_users
tell(checked="media, numbers, profile and blocks")
wait()
