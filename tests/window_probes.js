// The probes of window_speed.py in the page. A task posted to a channel runs as soon as the thread is free; one that a
// frame posts, once the frame is drawn.
window.bench = (() => {
  const soon = () => new Promise((resolve) => { const channel = new MessageChannel(); channel.port1.onmessage = () => resolve(performance.now()); channel.port2.postMessage(0); });
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => { const begun = performance.now(); void soon().then((ended) => resolve({ begun, ended })); }));
  const by = (name) => document.querySelector(`[data-testid="${name}"]`);
  /** Frames and tasks until `stop` is called; a task is as long as a timer of 4 ms is late. */
  const watch = () => {
    const begun = performance.now();
    let [frames, longest, last, running] = [0, 0, begun, true];
    const tasks = [];
    const draw = () => { if (running) { frames += 1; requestAnimationFrame(draw); } };
    const tick = () => {
      const now = performance.now();
      const task = now - last - 4;
      longest = Math.max(longest, task);
      if (task > 16) tasks.push(Math.round(task));
      last = now;
      if (running) setTimeout(tick, 4);
    };
    requestAnimationFrame(draw);
    setTimeout(tick, 4);
    return () => { running = false; return { frames: (1000 * frames) / (performance.now() - begun), longest, tasks }; };
  };
  /** How often in a second this display draws a page in which a word changes. */
  const ceiling = async () => {
    const word = document.body.appendChild(document.createElement('i'));
    word.style.cssText = 'position: fixed; left: 0; top: 0';
    const begun = performance.now();
    let frames = 0;
    while (performance.now() - begun < 3000) { word.textContent = String(frames++); await frame(); }
    word.remove();
    return (1000 * frames) / (performance.now() - begun);
  };
  const open = async (chat, end) => {
    const item = document.querySelector(`[data-chat-id="${chat}"]`);
    if (!item) throw new Error(`${chat} is not in sight`);
    const begun = performance.now();
    item.click();
    for (;;) {
      const { ended } = await frame();
      if ([...document.querySelectorAll('[data-testid=answer-text]')].at(-1)?.textContent.includes(end)) return ended - begun;
      if (ended - begun > 30000) throw new Error(`${chat} does not open`);
    }
  };
  const keys = (name) => {
    const figures = [];
    const stop = watch();
    let begun = 0;
    const field = by(name);
    const down = () => { begun = performance.now(); };
    const input = async () => {
      const from = begun;
      const handled = await soon();
      const drawn = await frame();
      figures.push({ work: handled - from + drawn.ended - drawn.begun, seen: drawn.ended - from });
    };
    field.addEventListener('keydown', down, { capture: true });
    field.addEventListener('input', input, { capture: true });
    return () => { field.removeEventListener('keydown', down, { capture: true }); field.removeEventListener('input', input, { capture: true }); return { figures, ...stop() }; };
  };
  const write = (name, text) => { const field = by(name); field.value = text; field.dispatchEvent(new InputEvent('input', { bubbles: true })); };
  const search = async (words) => {
    const begun = performance.now();
    const before = new Set(document.querySelectorAll('[data-testid=found-place]'));
    write('search', words);
    for (;;) {
      const { ended } = await frame();
      if ([...document.querySelectorAll('[data-testid=found-place]')].some((place) => !before.has(place))) return ended - begun;
      if (ended - begun > 10000) throw new Error(`${words} is not found`);
    }
  };
  /** From the shortcut until its entries are drawn, and from words until the chat of that title is. */
  const palette = async (words) => {
    const begun = performance.now();
    window.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', code: 'KeyK', ctrlKey: true, bubbles: true, cancelable: true }));
    const entries = () => [...document.querySelectorAll('[data-testid=palette-entry]')];
    const drawn = async (from, wanted) => {
      for (;;) {
        const { ended } = await frame();
        if (entries().some((entry) => entry.textContent.includes(wanted))) return ended - from;
        if (ended - from > 30000) throw new Error(`the palette does not offer ${wanted}`);
      }
    };
    const opened = await drawn(begun, '');
    const typed = performance.now();
    write('palette-words', words);
    const found = await drawn(typed, words);
    by('palette').dispatchEvent(new Event('cancel', { cancelable: true }));
    await frame();
    return { opened, found };
  };
  /** The work of each frame while the list of chats is scrolled so far in each. */
  const scroll = async (frames, step) => {
    let list = by('chat-item');
    while (list && list.scrollHeight <= list.clientHeight + 1) list = list.parentElement;
    const figures = [];
    for (let count = 0; count < frames; count++) {
      list.scrollTop += step;
      const { begun, ended } = await frame();
      figures.push(ended - begun);
    }
    if (list.scrollTop < step) throw new Error('the list does not scroll');
    list.scrollTop = 0;
    return figures;
  };
  /** So many chats in the form of another program, until the host has stored them. */
  const importChats = async (chats, messages) => {
    const texts = ['harbor', 'letter', 'winter', 'lantern', 'bridge'].map((word) => `${word} and then `.repeat(24));
    const conversations = Array.from({ length: chats }, (_, chat) => {
      const mapping = { root: { id: 'root', message: null, parent: null, children: ['0'] } };
      for (let at = 0; at < messages; at++) {
        const content = { content_type: 'text', parts: [texts[(chat + at) % texts.length]] };
        const message = { id: String(at), author: { role: at % 2 ? 'assistant' : 'user' }, create_time: 1.7e9 + 1000 * chat + at, content };
        mapping[at] = { id: String(at), parent: at ? String(at - 1) : 'root', children: at + 1 < messages ? [String(at + 1)] : [], message };
      }
      const time = 1.7e9 + 1000 * chat;
      return { id: `imported-${chat}`, title: `Imported ${chat}`, create_time: time, update_time: time, mapping, current_node: String(messages - 1) };
    });
    const bytes = new TextEncoder().encode(JSON.stringify(conversations));
    const begun = performance.now();
    const report = await window.__TAURI_INTERNALS__.invoke('import_chats', bytes);
    const time = performance.now() - begun;
    if (report.chats !== chats) throw new Error(`${report.chats} chats were imported`);
    return { time, bytes: bytes.length };
  };
  return { watch, ceiling, open, keys, write, search, palette, scroll, importChats, frame, by };
})();
