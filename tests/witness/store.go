package main

import (
	"context"
	"strings"
	"sync"

	"go.mau.fi/util/random"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
	waLog "go.mau.fi/whatsmeow/util/log"
)

// memory keeps in maps what a run needs (keys, sessions, who is who) and forgets the rest.
type memory struct {
	*store.NoopStore
	lock       sync.Mutex
	sessions   map[string][]byte
	senderKeys map[string][]byte
	preKeys    map[uint32]*keys.PreKey
	uploaded   uint32
	lids       map[string]types.JID
	numbers    map[string]types.JID
	appKeys    map[string]store.AppStateSyncKey
}

func newDevice(log waLog.Logger) *store.Device {
	m := &memory{
		NoopStore:  &store.NoopStore{},
		sessions:   map[string][]byte{},
		senderKeys: map[string][]byte{},
		preKeys:    map[uint32]*keys.PreKey{},
		lids:       map[string]types.JID{},
		numbers:    map[string]types.JID{},
		appKeys:    map[string]store.AppStateSyncKey{},
	}
	device := &store.Device{
		Log:            log,
		NoiseKey:       keys.NewKeyPair(),
		IdentityKey:    keys.NewKeyPair(),
		RegistrationID: 4711,
		AdvSecretKey:   random.Bytes(32),
		Initialized:    true,
		Identities:     m, Sessions: m, PreKeys: m, SenderKeys: m, AppStateKeys: m, AppState: m, Contacts: m,
		ChatSettings: m, MsgSecrets: m, PrivacyTokens: m, EventBuffer: m, LIDs: m, Container: m,
	}
	device.SignedPreKey = device.IdentityKey.CreateSignedPreKey(1)
	return device
}

func (m *memory) PutAppStateSyncKey(_ context.Context, id []byte, key store.AppStateSyncKey) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.appKeys[string(id)] = key
	return nil
}

func (m *memory) GetAppStateSyncKey(_ context.Context, id []byte) (*store.AppStateSyncKey, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	key, found := m.appKeys[string(id)]
	if !found {
		return nil, nil
	}
	return &key, nil
}

func (m *memory) IsTrustedIdentity(context.Context, string, [32]byte) (bool, error) { return true, nil }

func (m *memory) GetSession(_ context.Context, address string) ([]byte, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.sessions[address], nil
}

func (m *memory) HasSession(_ context.Context, address string) (bool, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.sessions[address] != nil, nil
}

func (m *memory) GetManySessions(_ context.Context, addresses []string) (map[string][]byte, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	found := map[string][]byte{}
	for _, address := range addresses {
		found[address] = m.sessions[address]
	}
	return found, nil
}

func (m *memory) PutSession(_ context.Context, address string, session []byte) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.sessions[address] = session
	return nil
}

func (m *memory) PutManySessions(_ context.Context, sessions map[string][]byte) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	for address, session := range sessions {
		m.sessions[address] = session
	}
	return nil
}

func (m *memory) DeleteSession(_ context.Context, address string) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	delete(m.sessions, address)
	return nil
}

// MigratePNToLID moves the sessions that were started under a number to the LID that it turned out to have.
func (m *memory) MigratePNToLID(_ context.Context, pn, lid types.JID) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	for address, session := range m.sessions {
		if device, ok := strings.CutPrefix(address, pn.SignalAddressUser()+":"); ok && session != nil {
			m.sessions[lid.SignalAddressUser()+":"+device] = session
			delete(m.sessions, address)
		}
	}
	return nil
}

func (m *memory) GetOrGenPreKeys(_ context.Context, count uint32) ([]*keys.PreKey, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	made := make([]*keys.PreKey, 0, count)
	for range count {
		made = append(made, m.newPreKey())
	}
	return made, nil
}

func (m *memory) GenOnePreKey(context.Context) (*keys.PreKey, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.newPreKey(), nil
}

// newPreKey is called with the lock held.
func (m *memory) newPreKey() *keys.PreKey {
	key := keys.NewPreKey(uint32(len(m.preKeys)) + 1)
	m.preKeys[key.KeyID] = key
	return key
}

func (m *memory) GetPreKey(_ context.Context, id uint32) (*keys.PreKey, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.preKeys[id], nil
}

func (m *memory) RemovePreKey(_ context.Context, id uint32) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.preKeys[id] = nil
	return nil
}

func (m *memory) PutSenderKey(_ context.Context, group, user string, session []byte) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.senderKeys[group+" "+user] = session
	return nil
}

func (m *memory) GetSenderKey(_ context.Context, group, user string) ([]byte, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.senderKeys[group+" "+user], nil
}

func (m *memory) DoDecryptionTxn(ctx context.Context, run func(context.Context) error) error {
	return run(ctx)
}

func (m *memory) PutLIDMapping(_ context.Context, lid, pn types.JID) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.lids[pn.User], m.numbers[lid.User] = lid.ToNonAD(), pn.ToNonAD()
	return nil
}

func (m *memory) PutManyLIDMappings(ctx context.Context, mappings []store.LIDMapping) error {
	for _, mapping := range mappings {
		_ = m.PutLIDMapping(ctx, mapping.LID, mapping.PN)
	}
	return nil
}

func (m *memory) GetPNForLID(_ context.Context, lid types.JID) (types.JID, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	pn := m.numbers[lid.User]
	if !pn.IsEmpty() {
		pn.Device = lid.Device
	}
	return pn, nil
}

func (m *memory) GetLIDForPN(_ context.Context, pn types.JID) (types.JID, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	lid := m.lids[pn.User]
	if !lid.IsEmpty() {
		lid.Device = pn.Device
	}
	return lid, nil
}

func (m *memory) GetManyLIDsForPNs(ctx context.Context, pns []types.JID) (map[types.JID]types.JID, error) {
	found := map[types.JID]types.JID{}
	for _, pn := range pns {
		if lid, _ := m.GetLIDForPN(ctx, pn); !lid.IsEmpty() {
			found[pn] = lid
		}
	}
	return found, nil
}
