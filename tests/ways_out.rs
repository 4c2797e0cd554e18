//! Every way in which a browser can leave a page or send a request, tried by a script inside Ponder's own pages, as if
//! a text had become one: none leaves, and no connection is opened, with Offline on or off.

use std::thread::sleep;
use std::time::Duration;

use serde_json::{json, Value};

use crate::support::driver::Window;
use crate::support::outside::{Outside, CONTROL};

/// The name of each way and the body of a function that takes it: `to` is an address outside, `at` its host and port,
/// `add` puts HTML on the page and returns its first element.
const WAYS: [(&str, &str); 62] = [
    ("location", "location = to"),
    ("location-href", "location.href = to"),
    ("location-assign", "location.assign(to)"),
    ("location-replace", "location.replace(to)"),
    ("location-data", "location.href = `data:text/html,<img src='${to}'>`"),
    (
        "location-blob",
        "location.href = URL.createObjectURL(new Blob([`<img src='${to}'>`], { type: 'text/html' }))",
    ),
    ("location-javascript", "location.href = `javascript:fetch('${to}')`"),
    ("location-host", "location.host = at"),
    ("location-protocol", "location.protocol = 'http:'"),
    ("navigation-api", "window.navigation?.navigate(to)"),
    ("link", "add(`<a href='${to}'>x</a>`).click()"),
    ("link-new-window", "add(`<a href='${to}' target=_blank rel=opener>x</a>`).click()"),
    ("link-download", "add(`<a href='${to}' download=x.txt>x</a>`).click()"),
    ("link-ping", "add(`<a href='#here' ping='${to}'>x</a>`).click()"),
    ("link-javascript", "add(`<a href=\"javascript:fetch('${to}')\">x</a>`).click()"),
    (
        "link-in-svg",
        "add(`<svg><a href='${to}'><text y=20>x</text></a></svg>`).querySelector('a').dispatchEvent(new MouseEvent('click', { bubbles: true }))",
    ),
    (
        "link-in-mathml",
        "add(`<math><mtext href='${to}'>x</mtext></math>`).firstChild.dispatchEvent(new MouseEvent('click', { bubbles: true }))",
    ),
    (
        "link-middle-button",
        "add(`<a href='${to}'>x</a>`).dispatchEvent(new MouseEvent('auxclick', { bubbles: true, cancelable: true, button: 1 }))",
    ),
    (
        "map-area",
        "add(`<div><img usemap=#m width=9 height=9><map name=m><area href='${to}' shape=default></map></div>`).querySelector('area').click()",
    ),
    ("base", "add(`<base href='${to}/'>`); add(`<a href=below>x</a>`).click()"),
    ("window-open", "window.open(to)"),
    ("window-open-self", "window.open(to, '_self')"),
    ("window-open-blank", "const other = window.open(''); if (other) other.location = to"),
    (
        "opener",
        "const other = window.open('about:blank'); if (other) other.document.write(`<script>opener.location='${to}'</script>`)",
    ),
    ("form-get", "add(`<form action='${to}'><input name=q value=1></form>`).submit()"),
    ("form-post", "add(`<form action='${to}' method=post><input name=q value=1></form>`).submit()"),
    ("form-new-window", "add(`<form action='${to}' target=_blank></form>`).submit()"),
    (
        "form-button",
        "add(`<form><button formaction='${to}' formmethod=post>x</button></form>`).querySelector('button').click()",
    ),
    ("form-image", "add(`<form><input type=image src='${to}'></form>`)"),
    (
        "meta-refresh",
        "document.head.append(Object.assign(document.createElement('meta'), { httpEquiv: 'refresh', content: `0;url=${to}` }))",
    ),
    ("document-write", "document.open = null; add(`<iframe></iframe>`).contentDocument?.write(`<img src='${to}'>`)"),
    ("frame", "add(`<iframe src='${to}'></iframe>`)"),
    (
        "frame-document",
        "add(`<iframe></iframe>`).srcdoc = `<script>top.location='${to}'</script><img src='${to}'>`",
    ),
    ("frame-data", "add(`<iframe src=\"data:text/html,<img src='${to}'>\"></iframe>`)"),
    ("frame-javascript", "add(`<iframe src=\"javascript:'<img src=${to}>'\"></iframe>`)"),
    ("object", "add(`<object data='${to}' type=text/html></object>`)"),
    ("embed", "add(`<embed src='${to}' type=text/html>`)"),
    ("history", "history.pushState({}, '', '/elsewhere'); history.pushState({}, '', to)"),
    ("history-back", "history.go(-1)"),
    ("service-worker", "navigator.serviceWorker?.register(to).catch(() => {})"),
    ("beacon", "navigator.sendBeacon(to, 'words of a chat')"),
    ("fetch", "fetch(to, { method: 'POST', body: 'words' }).catch(() => {})"),
    ("fetch-blind", "fetch(to, { mode: 'no-cors', keepalive: true }).catch(() => {})"),
    ("request", "const request = new XMLHttpRequest(); request.open('GET', to); request.send()"),
    ("socket", "new WebSocket(`ws://${at}/socket`)"),
    ("events", "new EventSource(to)"),
    ("peer", "const peer = new RTCPeerConnection({ iceServers: [{ urls: `stun:${at}` }, { urls: `turn:${at}?transport=tcp`, username: 'a', credential: 'b' }] }); peer.createDataChannel('x'); peer.createOffer().then((offer) => peer.setLocalDescription(offer))"),
    ("image", "new Image().src = to"),
    ("image-set", "add(`<image><source srcset='${to} 2x'><img srcset='${to} 1x' src='${to}'></image>`)"),
    ("media", "add(`<div><video src='${to}' poster='${to}' autoplay></video><audio src='${to}' autoplay></audio><video><track src='${to}' default></video></div>`)"),
    ("svg-image", "add(`<svg><image href='${to}' width=9 height=9/><use href='${to}#x'/><filter id=f><feImage href='${to}'/></filter><rect filter='url(#f)' width=9 height=9/><foreignObject width=9 height=9><img src='${to}'></foreignObject></svg>`)"),
    ("svg-image", "new Image().src = `data:image/svg+xml,${encodeURIComponent(`<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><style>@import url(${to});</style><image href='${to}' width='9' height='9'/><foreignObject width='9' height='9'><img xmlns='http://www.w3.org/1999/xhtml' src='${to}'/></foreignObject><script>fetch('${to}')</script></svg>`)}`"),
    ("style-sheet", "add(`<link rel=stylesheet href='${to}'>`)"),
    ("style-import", "add(`<style>@import url('${to}');</style>`)"),
    ("style-images", "add(`<p style=\"background: url('${to}'); list-style: url('${to}'); cursor: url('${to}'), auto; content: url('${to}'); mask: url('${to}'); border-image: url('${to}')\">x</p>`)"),
    ("style-font", "add(`<style>@font-face { font-family: far; src: url('${to}') } .far { font-family: far }</style>`); add(`<p class=far>x</p>`)"),
    ("hints", "for (const rel of ['preload', 'prefetch', 'preconnect', 'dns-prefetch', 'prerender', 'modulepreload', 'icon', 'manifest']) add(`<link rel=${rel} href='${to}' as=image>`)"),
    ("script", "document.head.append(Object.assign(document.createElement('script'), { src: to }))"),
    ("script-inline", "document.head.append(Object.assign(document.createElement('script'), { textContent: `new Image().src='${to}'` }))"),
    ("script-evaluated", "new Function(`new Image().src='${to}'; location='${to}'`)()"),
    ("module", "import(to).catch(() => {})"),
    ("worker", "new Worker(URL.createObjectURL(new Blob([`importScripts('${to}'); fetch('${to}')`]))); new SharedWorker(to)"),
];

/// Takes a way; an exception is a refusal as well.
fn take(window: &Window, name: &str, way: &str, outside: &Outside) -> Value {
    let script = format!(
        "const to = arguments[0], at = arguments[1];
         const add = (html) => {{
           const template = document.createElement('template');
           template.innerHTML = html;
           const element = template.content.firstElementChild;
           element.dataset.way = '';
           document.body.append(element);
           return element;
         }};
         try {{ {way} }} catch (error) {{ return String(error) }}"
    );
    window.run(
        &script,
        json!([format!("http://{}/{name}", outside.address), outside.address]),
    )
}

/// Waits until this is Ponder's own page with the chat in it, because some ways reload it, and removes the traces of
/// the way.
fn stays(window: &Window, after: &str) {
    let script = "const here = location.origin === 'tauri://localhost' && document.querySelector('[data-testid=composer]') !== null;
        document.querySelectorAll('[data-way], iframe').forEach((element) => element.remove()); return here";
    window.wait_until(&format!("Ponder's page is there after {after}"), || {
        window.try_run(script, json!([])) == Ok(Value::Bool(true))
    });
}

/// Switches the network off, or on again, as only the page of the Settings window may.
fn set_offline(window: &Window, offline: bool) {
    let open = "window.__TAURI_INTERNALS__.invoke('open_window', { name: 'settings' })";
    window.run(open, json!([]));
    window.switch_to("Settings");
    let set = "const done = arguments[1]; window.__TAURI_INTERNALS__.invoke('set_offline', { offline: arguments[0] }).then(() => done(true), () => done(false))";
    assert_eq!(window.run_async(set, json!([offline])), true);
    window.switch_to("Ponder");
}

#[test]
fn none_of_sixty_ways_leads_out() {
    let home = tempfile::tempdir().expect("a folder");
    let outside = Outside::open();
    let window = Window::open(home.path());
    for offline in [false, true] {
        set_offline(&window, offline);
        for (name, way) in WAYS {
            take(&window, name, way, &outside);
            sleep(Duration::from_millis(60));
            stays(&window, name);
        }
        // Slow ways need time.
        sleep(Duration::from_secs(2));
        stays(&window, "all of them");
        assert_eq!(outside.came(), [CONTROL], "offline: {offline}");
    }

    // By hand: a link dragged onto the page, its middle button, and the keys that go back.
    let plant = "const link = Object.assign(document.createElement('a'), { href: arguments[0], textContent: 'a link to drag' });
        link.style = 'position: fixed; left: 500px; top: 80px; z-index: 9'; link.dataset.testid = 'planted'; document.body.append(link)";
    window.run(plant, json!([format!("http://{}/dragged", outside.address)]));
    window.drag((520, 88), (700, 400));
    window.press_button("planted", 1);
    window.press_key("\u{e00a}\u{e012}");
    sleep(Duration::from_secs(1));
    stays(&window, "the hand's ways");
    assert_eq!(outside.came(), [CONTROL]);
    window.close();
}
