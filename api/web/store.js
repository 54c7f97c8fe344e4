// Chats and settings in localStorage. Each chat has its own key, so that two tabs do not overwrite
// each other's chats. Without storage (private windows, a full quota) everything lives in memory.

const CHAT_PREFIX = "tandem.chat.";
const SETTINGS_KEY = "tandem.settings";
const CHATS_MAX = 100;

const DEFAULT_SETTINGS = {
  system: "",
  temperature: null, // null: the server's default
  maxTokens: null,
  thinking: true,
  tools: "",
  apiKey: "",
  theme: "auto", // auto, light, dark
};

const memory = new Map();

function readItem(key) {
  if (memory.has(key)) return memory.get(key);
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function writeItem(key, value) {
  try {
    localStorage.setItem(key, value);
    memory.delete(key);
  } catch {
    memory.set(key, value);
  }
}

function removeItem(key) {
  memory.delete(key);
  try {
    localStorage.removeItem(key);
  } catch {
    // Nothing was stored then.
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export function loadSettings() {
  const stored = parse(readItem(SETTINGS_KEY)) ?? {};
  return { ...DEFAULT_SETTINGS, ...stored };
}

export function saveSettings(settings) {
  writeItem(SETTINGS_KEY, JSON.stringify(settings));
}

export function newChat() {
  return { id: crypto.getRandomValues(new Uint32Array(2)).join("-"), title: "", updated: Date.now(), messages: [] };
}

/** All chats, the newest first. */
export function loadChats() {
  const keys = new Set([...memory.keys()].filter((key) => key.startsWith(CHAT_PREFIX)));
  try {
    for (let i = 0; i < localStorage.length; ++i) {
      const key = localStorage.key(i);
      if (key.startsWith(CHAT_PREFIX)) keys.add(key);
    }
  } catch {
    // Memory only.
  }
  const chats = [...keys].map((key) => parse(readItem(key)));
  return chats
    .filter((chat) => chat && typeof chat.id === "string" && Array.isArray(chat.messages))
    .sort((a, b) => b.updated - a.updated);
}

/** Stores a chat, and drops the oldest beyond CHATS_MAX. */
export function saveChat(chat) {
  chat.updated = Date.now();
  writeItem(CHAT_PREFIX + chat.id, JSON.stringify(chat));
  for (const old of loadChats().slice(CHATS_MAX)) removeItem(CHAT_PREFIX + old.id);
}

export function deleteChat(id) {
  removeItem(CHAT_PREFIX + id);
}
