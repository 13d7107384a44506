// Command witness holds the simulated network against whatsmeow, a client that shares no code with Paloma or Baileys:
// it links by a code and by a QR, sends and receives texts and files, alone and in a group, is told of changes to groups
// and devices, catches up on what it missed, and logs out. It also talks with a gateway that has linked a line to the same
// network, for what the two tell each other of disappearing messages, and for the tokens of reports. What both sides of
// Paloma's own tests encode in the same wrong way, it does not read.
//
// usage: witness CONTROL_URL GATEWAY_URL API_KEY SESSION_ID LINE
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
	"slices"
	"strings"
	"sync"
	"time"

	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
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
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: witness CONTROL_URL GATEWAY_URL API_KEY SESSION_ID LINE")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	line := &line{api{os.Args[2], os.Args[3]}, os.Args[4], os.Args[5]}
	if err := run(ctx, api{base: os.Args[1]}, line); err != nil {
		fmt.Fprintln(os.Stderr, "FAILED:", err)
		os.Exit(1)
	}
}

type scene struct {
	control  api
	line     *line
	client   *whatsmeow.Client
	messages chan *events.Message
	open     chan struct{}
	groups   chan *events.GroupInfo
	warnings *warnings
	redirect func(*whatsmeow.Client)
}

// line is one of a gateway.
type line struct {
	gateway   api
	sessionID string
	number    string
}

func run(ctx context.Context, network api, line *line) error {
	s := &scene{
		control: network, line: line, messages: make(chan *events.Message, 1000), open: make(chan struct{}, 10),
		groups: make(chan *events.GroupInfo, 100), warnings: &warnings{Logger: waLog.Noop},
	}
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"links by a code", s.link},
		{"is told by its phone that chats are addressed by LID", s.migrate},
		{"is named by the settings that its phone shares", s.readName},
		{"sends a text", s.sendText},
		{"receives a text", s.receiveText},
		{"sends a file", s.sendFile},
		{"receives a file", s.receiveFile},
		{"sends and receives in a group", s.talkInGroup},
		{"is told of a group's new name, and that only admins write", s.changeGroup},
		{"lets messages disappear in a chat with a phone and with a gateway", s.disappear},
		{"lets messages of a group disappear, and is told when others do", s.disappearInGroup},
		{"derives the tokens of reports that a gateway sends", s.reportTokens},
		{"asks who is on the network", s.askWho},
		{"is told of a device that another client links by QR", s.meetDevice},
		{"catches up on 300 messages in order", s.catchUp},
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
	if level := os.Getenv("WITNESS_LOG"); level != "" {
		s.warnings.Logger = waLog.Stdout("whatsmeow", level, false)
	}
	s.client = whatsmeow.NewClient(newDevice(s.warnings), s.warnings)
	if s.redirect, err = redirection(network.URL, network.CA); err != nil {
		return err
	}
	s.redirect(s.client)
	ready := make(chan struct{}, 1)
	s.client.AddEventHandler(func(event any) {
		switch event := event.(type) {
		case *events.QR:
			ready <- struct{}{}
		case *events.Connected:
			s.open <- struct{}{}
		case *events.GroupInfo:
			s.groups <- event
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

// redirection has clients speak to the simulated network where they dial WhatsApp's addresses.
func redirection(socketURL, ca string) (func(*whatsmeow.Client), error) {
	target, err := url.Parse(socketURL)
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", target.Host)
	}
	// whatsmeow asks for TLS, the simulated network's WebSocket is plain.
	socket := &http.Client{Transport: &http.Transport{DialTLSContext: dial}}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(ca)) {
		return nil, fmt.Errorf("the CA is no certificate")
	}
	media := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	return func(client *whatsmeow.Client) {
		client.SetWebsocketHTTPClient(socket)
		client.SetPreLoginHTTPClient(socket)
		client.SetMediaHTTPClient(media)
	}, nil
}

// readName waits for the setting that the client reads once it has the key: its code checks each hash of it.
func (s *scene) readName(context.Context) error {
	return eventually("the name", func() (bool, error) { return s.client.Store.PushName == "Owner", nil })
}

// changeGroup changes a group of the client's own, which is notified of it as the other members are.
func (s *scene) changeGroup(ctx context.Context) error {
	var group struct{ JID string }
	asked := object{"subject": "Before", "participants": []string{owner, friend}}
	if err := s.control.call("POST", "/groups", asked, &group); err != nil {
		return err
	}
	jid, err := types.ParseJID(group.JID)
	if err != nil {
		return err
	}
	if err := s.client.SetGroupName(ctx, jid, "After"); err != nil {
		return err
	}
	if err := s.client.SetGroupAnnounce(ctx, jid, true); err != nil {
		return err
	}
	for name, announced := "", false; name == "" || !announced; {
		told, err := next(s.groups, "a change of the group")
		if err != nil {
			return err
		}
		if told.Name != nil {
			name = told.Name.Name
		}
		announced = announced || told.Announce != nil && told.Announce.IsAnnounce
		if name != "" && (name != "After" || told.JID != jid) {
			return fmt.Errorf("the client was told %+v", told)
		}
	}
	return nil
}

// meetDevice links a second client to the friend's phone. The first one checks the hash of the device list with it.
func (s *scene) meetDevice(ctx context.Context) error {
	second := whatsmeow.NewClient(newDevice(waLog.Noop), waLog.Noop)
	s.redirect(second)
	codes, open := make(chan string, 1), make(chan struct{}, 1)
	second.AddEventHandler(func(event any) {
		switch event := event.(type) {
		case *events.QR:
			codes <- event.Codes[0]
		case *events.Connected:
			open <- struct{}{}
		}
	})
	if err := second.Connect(); err != nil {
		return err
	}
	defer second.Disconnect()
	qr, err := next(codes, "a QR")
	if err != nil {
		return err
	}
	var answer struct{ Status string }
	if err := s.control.call("POST", "/phones/"+friend+"/scan", object{"qr": qr}, &answer); err != nil {
		return err
	}
	if _, err := next(open, "the login of the second client"); err != nil {
		return err
	}
	// Known from "asks who is on the network": asked again, it answers from its cache, unless the hash was wrong.
	err = eventually("the new device", func() (bool, error) {
		devices, err := s.client.GetUserDevices(ctx, []types.JID{user(friend)})
		return len(devices) == 2, err
	})
	if err == nil && s.warnings.have("hash doesn't match") {
		err = fmt.Errorf("the hash of the device list is another")
	}
	return err
}

// catchUp is away while its phone's friend writes. The network hands out what was missed as it is asked for.
func (s *scene) catchUp(ctx context.Context) error {
	const count, batch = 300, 100
	s.client.Disconnect()
	ids := make([]string, count)
	for i := range ids {
		var sent struct{ ID string }
		message := object{"to": owner, "text": fmt.Sprintf("missed %d", i)}
		if err := s.control.call("POST", "/phones/"+friend+"/messages", message, &sent); err != nil {
			return err
		}
		ids[i] = sent.ID
	}
	if err := s.client.Connect(); err != nil {
		return err
	}
	if _, err := next(s.open, "the login"); err != nil {
		return err
	}
	ask := waBinary.Node{Tag: "ib", Content: []waBinary.Node{{
		Tag: "offline_batch", Attrs: waBinary.Attrs{"count": fmt.Sprint(batch)},
	}}}
	for i := range count {
		if i%batch == 0 {
			if err := s.client.DangerousInternals().SendNode(ctx, ask); err != nil {
				return err
			}
		}
		got, err := next(s.messages, "missed message "+ids[i])
		if err != nil {
			return err
		}
		if got.Info.ID != ids[i] {
			return fmt.Errorf("%s came in place of %s", got.Info.ID, ids[i])
		}
	}
	return nil
}

// disappear sets how long messages stay, and is told so, by a phone and by what a gateway sends afterwards.
func (s *scene) disappear(ctx context.Context) error {
	const day, week = 24 * time.Hour, 7 * 24 * time.Hour
	set, err := s.fromPhone(object{"to": owner, "message": object{"protocolMessage": object{
		"type": "EPHEMERAL_SETTING", "ephemeralExpiration": week.Seconds(), "ephemeralSettingTimestamp": 1_768_478_400,
	}}})
	if err != nil {
		return err
	}
	told := set.Message.GetProtocolMessage()
	if told.GetType() != waE2E.ProtocolMessage_EPHEMERAL_SETTING || told.GetEphemeralExpiration() != uint32(week.Seconds()) {
		return fmt.Errorf("the client was told %v", set.Message)
	}
	for _, timer := range []time.Duration{day, week, 0} {
		at := time.Now()
		if err := s.client.SetDisappearingTimer(ctx, user(s.line.number), timer, at); err != nil {
			return err
		}
		// What the gateway sends before it has read the setting may not follow it yet.
		err := eventually(fmt.Sprintf("a text of the gateway that stays %s", timer), func() (bool, error) {
			got, err := s.fromGateway(owner, "how long?")
			if err != nil {
				return false, err
			}
			info := got.Message.GetExtendedTextMessage().GetContextInfo()
			isSo := info.GetExpiration() == uint32(timer.Seconds()) &&
				(timer == 0 || info.GetEphemeralSettingTimestamp() == at.Unix())
			return isSo, nil
		})
		if err != nil {
			return err
		}
		// The next is set later, by the second.
		time.Sleep(time.Until(at.Truncate(time.Second).Add(time.Second)))
	}
	return nil
}

// disappearInGroup is a member of a group in which it and another member change how long messages stay.
func (s *scene) disappearInGroup(ctx context.Context) error {
	var group struct{ JID string }
	asked := object{"subject": "Soon gone", "participants": []string{friend, owner, s.line.number}}
	if err := s.control.call("POST", "/groups", asked, &group); err != nil {
		return err
	}
	jid, err := types.ParseJID(group.JID)
	if err != nil {
		return err
	}
	const day = 24 * 60 * 60
	byMember := func() error { return s.control.call("PATCH", "/groups/"+group.JID, object{"ephemeral": 0}, nil) }
	bySelf := func() error { return s.client.SetDisappearingTimer(ctx, jid, day*time.Second, time.Time{}) }
	for _, change := range []struct {
		make    func() error
		seconds uint32
	}{{bySelf, day}, {byMember, 0}} {
		if err := change.make(); err != nil {
			return err
		}
		for {
			told, err := next(s.groups, "the group's lifetime")
			if err != nil {
				return err
			}
			if told.JID == jid && told.Ephemeral != nil {
				if told.Ephemeral.DisappearingTimer != change.seconds {
					return fmt.Errorf("the client was told %+v", told.Ephemeral)
				}
				break
			}
		}
		err := eventually(fmt.Sprintf("a text in the group that stays %d s", change.seconds), func() (bool, error) {
			got, err := s.fromGateway(group.JID, "how long?")
			return err == nil && got.Message.GetExtendedTextMessage().GetContextInfo().GetExpiration() == change.seconds, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reportTokens derives the token of each text of the gateway from what it has decrypted. The network gets the one that
// the gateway sent beside it.
func (s *scene) reportTokens(context.Context) error {
	for length := 1; length <= 24; length++ {
		got, err := s.fromGateway(owner, strings.Repeat("!", length))
		if err != nil {
			return err
		}
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(got.RawMessage)
		if err != nil {
			return err
		}
		own, to := got.Info.Sender.ToNonAD(), s.client.Store.LID.ToNonAD()
		// This whatsmeow hashes the remote address before the own one; since 2026 it hashes them in the order in which
		// whatsapp-rust, zapo and Paloma do, so here they are exchanged.
		node := s.client.DangerousInternals().GetMessageReportingToken(raw, got.RawMessage, to, own, got.Info.ID)
		want := node.GetChildByTag("reporting_token").Content.([]byte)
		var wire []struct {
			ID    string
			Shape struct{ ReportingToken string }
		}
		if err := s.control.call("GET", "/wire?line="+s.line.number, nil, &wire); err != nil {
			return err
		}
		sent := wire[len(wire)-1]
		if sent.ID != got.Info.ID || sent.Shape.ReportingToken != hex.EncodeToString(want) {
			return fmt.Errorf("the token of a text of %d is %s, and not %x", length, sent.Shape.ReportingToken, want)
		}
	}
	return nil
}

// fromGateway has the gateway send a text, and waits until the client has read it.
func (s *scene) fromGateway(to, text string) (*events.Message, error) {
	body := object{"sessionId": s.line.sessionID, "to": to, "text": text}
	if err := s.line.gateway.call("POST", "/messages/send/text", body, nil); err != nil {
		return nil, err
	}
	for {
		got, err := next(s.messages, "a text of the gateway")
		if err != nil || got.Message.GetExtendedTextMessage().GetText() == text {
			return got, err
		}
	}
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

// warnings remembers what the client warned of, and passes everything on.
type warnings struct {
	waLog.Logger
	lock sync.Mutex
	said []string
}

func (w *warnings) Warnf(message string, args ...any) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.said = append(w.said, fmt.Sprintf(message, args...))
	w.Logger.Warnf(message, args...)
}

// Sub keeps the warnings of the client's parts too.
func (w *warnings) Sub(string) waLog.Logger { return w }

func (w *warnings) have(part string) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	return slices.ContainsFunc(w.said, func(text string) bool { return strings.Contains(text, part) })
}

func eventually(what string, isSo func() (bool, error)) error {
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if so, err := isSo(); so || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s did not come", what)
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

// api is the sandbox's control API, or a gateway's, which needs a key.
type api struct{ base, key string }

func (a api) call(method, path string, body, into any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, a.base+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	request.Header.Set("content-type", "application/json")
	request.Header.Set("x-api-key", a.key)
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
