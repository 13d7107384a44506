/**
 * What a client's user would write, in the language of each generator: it sends a text and reads the events, and prints
 * the id of the message and the name of the first event; in PHP that of the account's plan.
 */
export const SAMPLES = {
  "openapi-generator python": `
import os, openapi_client as paloma
config = paloma.Configuration(host=os.environ["PALOMA_URL"], api_key={"apiKey": os.environ["PALOMA_KEY"]})
with paloma.ApiClient(config) as client:
    text = paloma.TextMessage(to=os.environ["TO"], text=os.environ["TEXT"], mentions=[], priority=paloma.Priority.HIGH)
    sent = paloma.MessagesApi(client).send_text(text)
    events = paloma.EventsApi(client).list_events()
    print(sent.message_id, events.data[0].actual_instance.event)
`,
  "openapi-generator java": `
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.*;
import org.openapitools.client.model.*;

public class Sample {
  public static void main(String[] args) throws Exception {
    java.util.Map<String, String> env = System.getenv();
    ApiClient client = new ApiClient().setBasePath(env.get("PALOMA_URL"));
    client.setApiKey(env.get("PALOMA_KEY"));
    TextMessage text = new TextMessage().to(env.get("TO")).text(env.get("TEXT")).priority(Priority.HIGH);
    Acknowledgement sent = new MessagesApi(client).sendText(text, null);
    EventPage events = new EventsApi(client).listEvents(null, null, null, 1);
    SessionQrEvent first = events.getData().get(0).getSessionQrEvent();
    System.out.println(sent.getMessageId() + " " + first.getEvent().getValue());
  }
}
`,
  "openapi-generator go": `
package main

import (
	"context"
	"fmt"
	"os"

	paloma "github.com/GIT_USER_ID/GIT_REPO_ID"
)

func main() {
	config := paloma.NewConfiguration()
	config.Servers = paloma.ServerConfigurations{{URL: os.Getenv("PALOMA_URL")}}
	config.AddDefaultHeader("x-api-key", os.Getenv("PALOMA_KEY"))
	client := paloma.NewAPIClient(config)
	text := paloma.NewTextMessage(os.Getenv("TO"), os.Getenv("TEXT"))
	text.SetPriority(paloma.HIGH)
	sent, _, err := client.MessagesAPI.SendText(context.Background()).TextMessage(*text).Execute()
	if err != nil {
		panic(err)
	}
	events, _, err := client.EventsAPI.ListEvents(context.Background()).Execute()
	if err != nil {
		panic(err)
	}
	fmt.Println(sent.MessageId, events.Data[0].SessionQrEvent.Event)
}
`,
  "openapi-generator php": `
<?php
require "/usr/share/php/GuzzleHttp/autoload.php";
spl_autoload_register(function ($name) {
    $file = __DIR__ . "/lib/" . strtr(substr($name, strlen("OpenAPI\\\\Client\\\\")), "\\\\", "/") . ".php";
    if (str_starts_with($name, "OpenAPI\\\\Client\\\\") && is_file($file)) require $file;
});
// What compiling is elsewhere: every class is loaded.
foreach (glob(__DIR__ . "/lib/{,*/}*.php", GLOB_BRACE) as $file) require_once $file;
$config = OpenAPI\\Client\\Configuration::getDefaultConfiguration()
    ->setHost(getenv("PALOMA_URL"))->setApiKey("x-api-key", getenv("PALOMA_KEY"));
$text = new OpenAPI\\Client\\Model\\TextMessage(["to" => getenv("TO"), "text" => getenv("TEXT"), "priority" => "high"]);
$sent = (new OpenAPI\\Client\\Api\\MessagesApi(null, $config))->sendText($text);
// Its classes cannot tell events apart: it looks for one that is named as the event.
$account = (new OpenAPI\\Client\\Api\\AccountApi(null, $config))->getAccount();
echo $sent->getMessageId(), " ", $account->getData()->getPlan()->getName(), "\\n";
`,
  "openapi-generator typescript-fetch": `
import { Configuration, EventsApi, MessagesApi, Priority } from "./index.ts";

const config = new Configuration({ basePath: process.env.PALOMA_URL, apiKey: process.env.PALOMA_KEY });
const textMessage = { to: process.env.TO!, text: process.env.TEXT!, priority: Priority.High };
const sent = await new MessagesApi(config).sendText({ textMessage });
const events = await new EventsApi(config).listEvents();
console.log(sent.messageId, events.data[0]!.event);
`,
  "@hey-api/openapi-ts": `
import { client } from "./client.gen.ts";
import { listEvents, sendText, type TextMessage } from "./index.ts";

client.setConfig({ baseUrl: process.env.PALOMA_URL, headers: { "x-api-key": process.env.PALOMA_KEY } });
const body: TextMessage = { to: process.env.TO!, text: process.env.TEXT!, priority: "high" };
const { data: sent } = await sendText({ body, throwOnError: true });
const { data: events } = await listEvents({ throwOnError: true });
console.log(sent.messageId, events.data[0]!.event);
`,
  "openapi-typescript": `
import createClient from "openapi-fetch";
import type { components, paths } from "./api.d.ts";

const headers = { "x-api-key": process.env.PALOMA_KEY };
const client = createClient<paths>({ baseUrl: process.env.PALOMA_URL, headers });
const body: components["schemas"]["TextMessage"] = { to: process.env.TO!, text: process.env.TEXT!, priority: "high" };
const { data: sent } = await client.POST("/v1/messages/send/text", { body });
const { data: events } = await client.GET("/v1/events");
const first = events!.data[0]!;
// The compiler knows the data of an event by its name.
console.log(sent!.messageId, first.event === "session.qr" && first.data.qr ? first.event : "");
`,
  "oapi-codegen": `
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"paloma"
)

func main() {
	withKey := func(_ context.Context, request *http.Request) error {
		request.Header.Set("x-api-key", os.Getenv("PALOMA_KEY"))
		return nil
	}
	client, err := paloma.NewClientWithResponses(os.Getenv("PALOMA_URL"), paloma.WithRequestEditorFn(withKey))
	if err != nil {
		panic(err)
	}
	text := paloma.TextMessage{To: os.Getenv("TO"), Text: os.Getenv("TEXT")}
	sent, err := client.SendTextWithResponse(context.Background(), nil, text)
	if err != nil {
		panic(err)
	}
	events, err := client.ListEventsWithResponse(context.Background(), nil)
	if err != nil {
		panic(err)
	}
	first, err := events.JSON200.Data[0].AsSessionQrEvent()
	if err != nil {
		panic(err)
	}
	fmt.Println(sent.JSON202.MessageId, first.Event)
}
`,
  "openapi-python-client": `
import os
from paloma import AuthenticatedClient
from paloma.api.events import list_events
from paloma.api.messages import send_text
from paloma.models import Priority, TextMessage

key = {"auth_header_name": "x-api-key", "prefix": "", "token": os.environ["PALOMA_KEY"]}
client = AuthenticatedClient(base_url=os.environ["PALOMA_URL"], **key)
text = TextMessage(to=os.environ["TO"], text=os.environ["TEXT"], priority=Priority.HIGH)
sent = send_text.sync(client=client, body=text)
events = list_events.sync(client=client)
print(sent.message_id, events.data[0].event.value)
`,
};
