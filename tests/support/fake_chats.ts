/** Groups, contacts and chats at the port: a network on which there is one group, and everybody is unknown. */
import { NetworkRefusal } from "../../src/whatsapp/connection.ts";
import type { Chats, Contacts, Groups, WholeGroup } from "../../src/whatsapp/chats.ts";

type IsOpen = () => boolean;

/** Answers while the connection is open. */
function whileOpen<T>(isOpen: IsOpen, answer: () => T): Promise<T> {
  if (isOpen()) return Promise.try(answer);
  return Promise.reject(new NetworkRefusal("The session is not connected to the messaging network."));
}

function unknown(): never {
  throw new NetworkRefusal("There is no such group.", { code: 404 });
}

export function fakeGroups(isOpen: IsOpen): Groups {
  const made = new Map<string, WholeGroup>();
  const of = (id: string) => made.get(id) ?? unknown();
  return {
    list: () => whileOpen(isOpen, () => [...made.values()]),
    get: (id) => whileOpen(isOpen, () => of(id)),
    create: (name, participants) =>
      whileOpen(isOpen, () => {
        const id = `12036300000000000${made.size}@g.us`;
        const members = participants.map((number) => ({ id: `${number}@s.whatsapp.net`, number, isAdmin: false }));
        const settings = { description: "", announce: false, locked: false, ephemeral: 0 };
        const group = {
          id,
          name,
          ...settings,
          size: members.length + 1,
          isAdmin: true,
          createdAt: 0,
          participants: members,
        };
        made.set(id, group);
        return { group, results: participants.map((number) => ({ number, error: null })) };
      }),
    change: (id, settings) => whileOpen(isOpen, () => void Object.assign(of(id), settings)),
    setPicture: (id) => whileOpen(isOpen, () => void of(id)),
    leave: (id) => whileOpen(isOpen, () => void (of(id), made.delete(id))),
    changeMembers: (id, _action, participants) =>
      whileOpen(isOpen, () => (of(id), participants.map((number) => ({ number, error: null })))),
    invite: (id) => whileOpen(isOpen, () => `https://chat.whatsapp.com/${of(id).id.slice(0, 18)}`),
    renewInvite: (id) => whileOpen(isOpen, () => `https://chat.whatsapp.com/${of(id).id.slice(0, 18)}x`),
    join: () => whileOpen(isOpen, unknown),
    requests: (id) => whileOpen(isOpen, () => (of(id), [])),
    answerRequests: (id) => whileOpen(isOpen, () => (of(id), [])),
  };
}

export function fakeContacts(isOpen: IsOpen): Contacts {
  const blocked = new Set<string>();
  const profile: Awaited<ReturnType<Contacts["profile"]>> = {
    name: "Shop",
    about: null,
    username: null,
    pictureUrl: null,
  };
  const nothing = { lid: null, name: null, about: null, pictureUrl: null, business: null };
  return {
    find: () => whileOpen(isOpen, () => ({ exists: false, jid: null, needsKey: false })),
    card: (number) => whileOpen(isOpen, () => ({ exists: false, jid: `${number}@s.whatsapp.net`, ...nothing })),
    block: (number) => whileOpen(isOpen, () => void blocked.add(number)),
    unblock: (number) => whileOpen(isOpen, () => void blocked.delete(number)),
    blocklist: () =>
      whileOpen(isOpen, () => [...blocked].map((number) => ({ jid: `${number}@s.whatsapp.net`, number }))),
    profile: () => whileOpen(isOpen, () => ({ ...profile })),
    changeProfile: ({ name, about }) =>
      whileOpen(
        isOpen,
        () => void Object.assign(profile, { name: name ?? profile.name, about: about ?? profile.about }),
      ),
  };
}

export function fakeChats(isOpen: IsOpen): Chats {
  return {
    show: () => whileOpen(isOpen, () => {}),
    namesOf: (chat) => whileOpen(isOpen, () => [chat]),
    read: () => whileOpen(isOpen, () => {}),
  };
}
