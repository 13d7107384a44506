// Command witness holds the simulated network against whatsmeow, a client that shares no code with Paloma or Baileys:
// it links, sends and receives texts and files, alone and in a group, and logs out. What both sides of Paloma's own
// tests encode in the same wrong way, it does not read.
//
// usage: witness CONTROL_URL
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	waLog "go.mau.fi/whatsmeow/util/log"
	"google.golang.org/protobuf/proto"
)

const (
	owner   = "4915500000001"
	friend  = "4915500000002"
	patient = 20 * time.Second
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: witness CONTROL_URL")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := run(ctx, control(os.Args[1])); err != nil {
		fmt.Fprintln(os.Stderr, "FAILED:", err)
		os.Exit(1)
	}
}

type scene struct {
	control  control
	client   *whatsmeow.Client
	messages chan *events.Message
	open     chan struct{}
}

func run(ctx context.Context, network control) error {
	s := &scene{control: network, messages: make(chan *events.Message, 100), open: make(chan struct{}, 10)}
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"links by a code", s.link},
		{"is told by its phone that chats are addressed by LID", s.migrate},
		{"sends a text", s.sendText},
		{"receives a text", s.receiveText},
		{"sends a file", s.sendFile},
		{"receives a file", s.receiveFile},
		{"sends and receives in a group", s.talkInGroup},
		{"asks who is on the network", s.askWho},
		{"logs out", s.logOut},
	} {
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Println("ok:", step.name)
	}
	return nil
}

func (s *scene) link(ctx context.Context) error {
	var network struct{ URL, RootKey, CA string }
	if err := s.control.call("GET", "/network", nil, &network); err != nil {
		return err
	}
	key, err := hex.DecodeString(network.RootKey)
	if err != nil || copy(whatsmeow.WACertPubKey[:], key) != 32 {
		return fmt.Errorf("the root key is no key: %q", network.RootKey)
	}
	for number, name := range map[string]string{owner: "Owner", friend: "Friend"} {
		if err := s.control.call("POST", "/phones", object{"number": number, "name": name}, nil); err != nil {
			return err
		}
	}
	level := os.Getenv("WITNESS_LOG")
	if level == "" {
		level = "ERROR"
	}
	log := waLog.Stdout("whatsmeow", level, false)
	s.client = whatsmeow.NewClient(newDevice(log), log)
	if err := s.redirect(network.URL, network.CA); err != nil {
		return err
	}
	ready := make(chan struct{}, 1)
	s.client.AddEventHandler(func(event any) {
		switch event := event.(type) {
		case *events.QR:
			ready <- struct{}{}
		case *events.Connected:
			s.open <- struct{}{}
		case *events.Message:
			// A group's sender key comes as an event of its own before the message.
			if keysOnly := event.Message.SenderKeyDistributionMessage != nil && event.Message.Conversation == nil; !keysOnly {
				s.messages <- event
			}
		}
	})
	if err := s.client.Connect(); err != nil {
		return err
	}
	if _, err := next(ready, "a QR"); err != nil {
		return err
	}
	code, err := s.client.PairPhone(ctx, owner, false, whatsmeow.PairClientChrome, "Chrome (Linux)")
	if err != nil {
		return err
	}
	var answer struct{ Status string }
	if err := s.control.call("POST", "/phones/"+owner+"/enter-code", object{"code": code}, &answer); err != nil {
		return err
	}
	if answer.Status != "linked" {
		return fmt.Errorf("the phone says %q", answer.Status)
	}
	_, err = next(s.open, "the login after linking")
	return err
}

// migrate waits for the history that the phone sends after linking, which the client stores in the background.
func (s *scene) migrate(ctx context.Context) error {
	for deadline := time.Now().Add(patient); s.client.Store.LIDMigrationTimestamp == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("the history does not say so")
		}
	}
	return nil
}

// redirect has the client speak to the simulated network where it dials WhatsApp's addresses.
func (s *scene) redirect(socketURL, ca string) error {
	target, err := url.Parse(socketURL)
	if err != nil {
		return err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", target.Host)
	}
	// whatsmeow asks for TLS, the simulated network's WebSocket is plain.
	socket := &http.Client{Transport: &http.Transport{DialTLSContext: dial}}
	s.client.SetWebsocketHTTPClient(socket)
	s.client.SetPreLoginHTTPClient(socket)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(ca)) {
		return fmt.Errorf("the CA is no certificate")
	}
	s.client.SetMediaHTTPClient(&http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
	})
	return nil
}

func (s *scene) sendText(ctx context.Context) error {
	sent, err := s.client.SendMessage(ctx, user(friend), &waE2E.Message{Conversation: proto.String("from whatsmeow ✓")})
	if err != nil {
		return err
	}
	item, err := s.arrival(friend, sent.ID)
	if err == nil && (item.Text != "from whatsmeow ✓" || item.From != user(owner).String()) {
		err = fmt.Errorf("the phone shows %+v", item)
	}
	return err
}

func (s *scene) receiveText(context.Context) error {
	message, err := s.fromPhone(object{"to": owner, "text": "from a phone ✓"})
	if err == nil && message.Message.GetConversation() != "from a phone ✓" {
		err = fmt.Errorf("the client shows %v", message.Message)
	}
	return err
}

func (s *scene) sendFile(ctx context.Context) error {
	file := bytes.Repeat([]byte("a file by whatsmeow\n"), 20_000)
	upload, err := s.client.Upload(ctx, file, whatsmeow.MediaDocument)
	if err != nil {
		return err
	}
	sent, err := s.client.SendMessage(ctx, user(friend), &waE2E.Message{DocumentMessage: &waE2E.DocumentMessage{
		URL: &upload.URL, DirectPath: &upload.DirectPath, MediaKey: upload.MediaKey, FileLength: &upload.FileLength,
		FileSHA256: upload.FileSHA256, FileEncSHA256: upload.FileEncSHA256,
		FileName: proto.String("whatsmeow.txt"), Mimetype: proto.String("text/plain"),
	}})
	if err != nil {
		return err
	}
	item, err := s.arrival(friend, sent.ID)
	hash := sha256.Sum256(file)
	if err == nil && (item.SHA256 != hex.EncodeToString(hash[:]) || item.Filename != "whatsmeow.txt") {
		err = fmt.Errorf("the phone shows %+v", item)
	}
	return err
}

func (s *scene) receiveFile(ctx context.Context) error {
	file := bytes.Repeat([]byte("a file by a phone\n"), 20_000)
	message, err := s.fromPhone(object{
		"to": owner, "file": base64.StdEncoding.EncodeToString(file), "filename": "phone.txt", "mimetype": "text/plain",
	})
	if err != nil {
		return err
	}
	got, err := s.client.DownloadAny(ctx, message.Message)
	if err == nil && !bytes.Equal(got, file) {
		err = fmt.Errorf("%d bytes came, %d were sent, and they differ", len(got), len(file))
	}
	return err
}

func (s *scene) talkInGroup(ctx context.Context) error {
	var group struct{ JID string }
	asked := object{"subject": "Witnesses", "participants": []string{friend, owner}}
	if err := s.control.call("POST", "/groups", asked, &group); err != nil {
		return err
	}
	jid, err := types.ParseJID(group.JID)
	if err != nil {
		return err
	}
	for _, text := range []string{"first with a sender key", "second without"} {
		sent, err := s.client.SendMessage(ctx, jid, &waE2E.Message{Conversation: proto.String(text)})
		if err != nil {
			return err
		}
		if item, err := s.arrival(friend, sent.ID); err != nil || item.Text != text || item.Chat != group.JID {
			return fmt.Errorf("the phone shows %+v (%v)", item, err)
		}
		message, err := s.fromPhone(object{"to": group.JID, "text": "answer to " + text})
		if err != nil {
			return err
		}
		if message.Message.GetConversation() != "answer to "+text || message.Info.Chat != jid {
			return fmt.Errorf("the client shows %v", message)
		}
	}
	return nil
}

func (s *scene) askWho(ctx context.Context) error {
	answers, err := s.client.IsOnWhatsApp(ctx, []string{"+" + friend, "+4915599999999"})
	if err != nil {
		return err
	}
	if len(answers) != 2 || !answers[0].IsIn || answers[1].IsIn {
		return fmt.Errorf("the network says %+v", answers)
	}
	devices, err := s.client.GetUserDevices(ctx, []types.JID{user(friend)})
	if err == nil && len(devices) != 1 {
		err = fmt.Errorf("the friend's devices are %v", devices)
	}
	return err
}

func (s *scene) logOut(ctx context.Context) error {
	if err := s.client.Logout(ctx); err != nil {
		return err
	}
	var phone struct{ Devices []any }
	if err := s.control.call("GET", "/phones/"+owner, nil, &phone); err != nil {
		return err
	}
	if len(phone.Devices) != 0 {
		return fmt.Errorf("the phone still has %v", phone.Devices)
	}
	return nil
}

// fromPhone has the friend's phone send something, and waits until the client has read it.
func (s *scene) fromPhone(message object) (*events.Message, error) {
	var sent struct{ ID string }
	if err := s.control.call("POST", "/phones/"+friend+"/messages", message, &sent); err != nil {
		return nil, err
	}
	for {
		got, err := next(s.messages, "message "+sent.ID)
		if err != nil || got.Info.ID == sent.ID {
			return got, err
		}
	}
}

type item struct{ ID, From, Chat, Text, Filename, SHA256 string }

// arrival waits until the phone has decrypted the message.
func (s *scene) arrival(number, id string) (item, error) {
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var items []item
		if err := s.control.call("GET", "/phones/"+number+"/messages", nil, &items); err != nil {
			return item{}, err
		}
		for _, one := range items {
			if one.ID == id {
				return one, nil
			}
		}
	}
	return item{}, fmt.Errorf("message %s did not arrive at the phone", id)
}

func next[T any](from <-chan T, what string) (T, error) {
	select {
	case value := <-from:
		return value, nil
	case <-time.After(patient):
		var none T
		return none, fmt.Errorf("%s did not come", what)
	}
}

func user(number string) types.JID { return types.NewJID(number, types.DefaultUserServer) }

type object map[string]any

// control is the address of the sandbox's control API.
type control string

func (c control) call(method, path string, body, into any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, string(c)+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode, answer)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}
