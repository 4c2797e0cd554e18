//! The TypeScript interface of the commands, generated from their descriptions into `ui/src/host/generated.ts`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use api::WindowName;
use ts_rs::{Config, TypeVisitor, TS};

/// A command as `#[command]` describes it.
pub struct Description {
    pub name: &'static str,
    pub docs: &'static str,
    /// The windows whose pages may call it; Tauri refuses all others, by the permissions that are written below.
    pub windows: Vec<WindowName>,
    pub arguments: Vec<Argument>,
    /// The type inside the promise.
    pub result: String,
}

/// An argument of a command, in TypeScript.
pub struct Argument {
    pub name: &'static str,
    pub kind: Kind,
    pub ty: String,
}

/// The way an argument takes to the host.
pub enum Kind {
    /// A field of the call's JSON.
    Value,
    /// A callback for everything that the command sends.
    Channel,
    /// The body of the call, in place of JSON.
    Body,
    /// A text in this header.
    Header(&'static str),
}

/// Names types in TypeScript and remembers the files that they are imported from.
pub struct Types {
    config: Config,
    files: BTreeMap<String, PathBuf>,
}

impl Types {
    fn new() -> Self {
        Self {
            // Integers cross the bridge as JSON numbers.
            config: Config::new().with_large_int("number"),
            files: BTreeMap::new(),
        }
    }

    /// The name of a type.
    pub fn name<T: TS + 'static>(&mut self) -> String {
        self.visit::<T>();
        T::visit_generics(self);
        T::name(&self.config)
    }

    /// A narrower name that was given for a type.
    pub fn name_as<T: TS + 'static>(&mut self, text: &str) -> String {
        self.name::<T>();
        text.to_owned()
    }
}

impl TypeVisitor for Types {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        if let Some(file) = T::output_path() {
            self.files.insert(T::ident(&self.config), file);
        }
    }
}

/// The header of the file and the bridge that its calls go through.
const HEAD: &str = "\
// Generated from `src-tauri/src/commands` by `cargo test -p ponder-app --lib interface`; never edited.
";
const BRIDGE: &str = "
/** The bridge to the host. `channel` makes a callback an argument, `header` writes a text in letters that headers hold. */
export interface Bridge {
  invoke<T>(
    command: string,
    args?: Record<string, unknown> | Uint8Array,
    options?: { headers: Record<string, string> },
  ): Promise<T>;
  channel<T>(callback: (message: T) => void): unknown;
  header(text: string): string;
}

/** The calls of all commands through a bridge. */
export const commandsThrough = ({ invoke, channel, header }: Bridge): Commands => ({
";

/// The text of the file.
fn generate(commands: &[Description], types: &Types) -> String {
    let mut body = String::from(
        "\n/** The commands of the host. Every call may reject with its error. */\nexport interface Commands {\n",
    );
    for command in commands {
        let _ = writeln!(body, "  /** {} */\n  {}", command.docs, signature(command));
    }
    body += "}\n\n/** The windows whose pages may call each command; the host refuses all others. */\n";
    body += "export const COMMAND_WINDOWS: Readonly<Record<keyof Commands, readonly WindowName[]>> = {\n";
    for command in commands {
        let windows = command.windows.iter().map(|window| format!("'{}'", window.as_str()));
        let windows = windows.collect::<Vec<_>>().join(", ");
        let _ = writeln!(body, "  {}: [{windows}],", camel_case(command.name));
    }
    body += "};\n";
    let mut calls = String::new();
    for command in commands {
        let _ = writeln!(calls, "  {},", call(command));
    }

    let mut text = String::from(HEAD);
    text.push('\n');
    for (name, file) in &types.files {
        if name == "WindowName" || has_word(&body, name) {
            let file = file.with_extension("");
            let _ = writeln!(text, "import type {{ {name} }} from '../bindings/{}';", file.display());
        }
    }
    text + &body + BRIDGE + &calls + "});\n"
}

/// A line such as `chat(id: string): Promise<ChatView>;`.
fn signature(command: &Description) -> String {
    let arguments = command.arguments.iter().map(|argument| match argument.kind {
        Kind::Channel => format!("{}: (message: {}) => void", argument.name, argument.ty),
        _ => format!("{}: {}", argument.name, argument.ty),
    });
    let arguments = arguments.collect::<Vec<_>>().join(", ");
    format!(
        "{}({arguments}): Promise<{}>;",
        camel_case(command.name),
        command.result
    )
}

/// A line such as `chat: (id) => invoke('chat', { id })`.
fn call(command: &Description) -> String {
    let names: Vec<&str> = command.arguments.iter().map(|argument| argument.name).collect();
    let mut parts = vec![format!("'{}'", command.name)];
    let mut fields = Vec::new();
    let mut headers = Vec::new();
    for Argument { name, kind, .. } in &command.arguments {
        match kind {
            Kind::Value => fields.push((*name).to_owned()),
            Kind::Channel => fields.push(format!("{name}: channel({name})")),
            Kind::Body => parts.push((*name).to_owned()),
            Kind::Header(header) => headers.push(format!("'{header}': header({name})")),
        }
    }
    if !fields.is_empty() {
        parts.push(format!("{{ {} }}", fields.join(", ")));
    }
    if !headers.is_empty() {
        parts.push(format!("{{ headers: {{ {} }} }}", headers.join(", ")));
    }
    let (name, names, parts) = (camel_case(command.name), names.join(", "), parts.join(", "));
    format!("{name}: ({names}) => invoke({parts})")
}

/// True if a name stands in a text, and not within a longer one.
fn has_word(text: &str, name: &str) -> bool {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .any(|word| word == name)
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (head, tail) = word.split_at(1);
        camel += &(head.to_uppercase() + tail);
    }
    camel
}

/// The permissions of Tauri's own that a window's page has.
fn permissions_of_tauri(window: WindowName) -> &'static [&'static str] {
    const HEARS: &str = "core:event:allow-listen";
    const NO_LONGER: &str = "core:event:allow-unlisten";
    const DRAGS: &str = "core:window:allow-start-dragging";
    // A double click on a header makes a window as large as the screen, as one on a title bar does.
    const ENLARGES: &str = "core:window:allow-internal-toggle-maximize";
    match window {
        WindowName::Chat | WindowName::Models | WindowName::Settings => &[HEARS, NO_LONGER, DRAGS, ENLARGES],
        WindowName::Consent => &[HEARS, NO_LONGER],
        // Quick entry keeps its size.
        WindowName::Quick => &[HEARS, NO_LONGER, DRAGS],
        WindowName::Failure => &[],
    }
}

/// The file by which Tauri knows what each window's page may call.
fn capabilities(commands: &[Description]) -> String {
    let windows = WindowName::ALL.map(|window| {
        let own = commands.iter().filter(|command| command.windows.contains(&window));
        let own = own.map(|command| format!("allow-{}", command.name.replace('_', "-")));
        let of_tauri = permissions_of_tauri(window).iter().map(|name| (*name).to_owned());
        serde_json::json!({
            "identifier": window.as_str(),
            "description": "Generated from src-tauri/src/commands; never edited.",
            "windows": [window.as_str()],
            "permissions": of_tauri.chain(own).collect::<Vec<_>>(),
        })
    });
    serde_json::to_string_pretty(&windows).expect("plain data") + "\n"
}

/// Writes a file anew if it differs; true if it did.
fn was_stale(path: &str, fresh: &str) -> bool {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::fs::read_to_string(&path).unwrap_or_default() == fresh {
        return false;
    }
    std::fs::write(&path, fresh).expect("it can be written");
    true
}

#[test]
fn the_interface_of_the_windows_is_fresh() {
    let mut types = Types::new();
    types.name::<WindowName>();
    let commands = super::describe(&mut types);
    let files = [
        ("ui/src/host/generated.ts", generate(&commands, &types)),
        ("src-tauri/capabilities/windows.json", capabilities(&commands)),
    ];
    let stale = files.iter().filter(|(path, fresh)| was_stale(path, fresh));
    let stale: Vec<&str> = stale.map(|(path, _)| *path).collect();
    assert!(
        stale.is_empty(),
        "{stale:?} were stale and are written anew: commit them. `cargo test -p ponder-app --lib interface` does the same"
    );
}
