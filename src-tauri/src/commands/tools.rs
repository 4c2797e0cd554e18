//! Tools: servers, rules, consents, and calls that wait. Only the consent window may approve a call, and only a dialog of
//! the system switches a server on or opens the page at which somebody signs in: no page gains anything by calling the
//! other commands.

use api::{
    BundleValue, CallApproval, ChatView, FieldProblem, FoundServer, RunningCall, ServerPrompts, ServerResources,
    ToolBundle, ToolClient, ToolRule, ToolSetup, ToolsChange, ToolsView, WaitingCall, WaitingElicitation,
    WebSearchSetup, WindowName,
};
use command::command;
use protocol::{Content, Reason, Result, ToolRef};
use tauri::{AppHandle, Manager, State, WebviewWindow};
use tauri_plugin_dialog::DialogExt;
use tools::oauth::Browser;
use tools::visible::visible;

use super::windows::open_link;
use crate::app::state::App;
use crate::system::{failed, link};
use crate::windows::question::{self, Answer, Question};
use crate::windows::window;
use crate::words;

/// Servers and tools, for the choice of a chat. Nothing is started.
#[command(chat)]
pub async fn chat_tools(app: State<'_, App>) -> Result<ToolsView> {
    Ok(app.tools.view().await?)
}

/// Starts a server that is switched on, so that its tools are known.
#[command(chat)]
pub async fn start_tool_server(app: State<'_, App>, id: String) -> Result<()> {
    Ok(app.tools.start(&id).await?)
}

/// How the tools that a chat names now differ from those that its model is told of; null if they do not. Nothing is
/// started.
#[command(chat)]
pub async fn tools_change(app: State<'_, App>, chat: String) -> Result<Option<ToolsChange>> {
    app.chat_of(&chat).await.chats().tools_change(&chat).await
}

/// Has the model of a chat told of the tools that the chat names now; its next prompt is read anew.
#[command(chat)]
pub async fn use_new_tools(app: State<'_, App>, chat: String) -> Result<()> {
    app.chat_of(&chat).await.chats().use_new_tools(&chat).await
}

/// The resources of the servers that are switched on, which are started for it: the person asked.
#[command(chat)]
pub async fn server_resources(app: State<'_, App>) -> Result<Vec<ServerResources>> {
    Ok(app.tools.resources().await?)
}

/// Reads a resource of a server as a file of the person is read, and stores it for this chat (empty for a new one). It
/// belongs to no message yet.
#[command(chat, types(result = "Extract<Content, { kind: 'image' | 'file' }>"))]
pub async fn attach_resource(
    app: State<'_, App>,
    server: String,
    uri: String,
    name: String,
    chat: String,
) -> Result<Content> {
    let file = app.tools.read_resource(&server, &uri, &name).await?;
    let chat = app.chat_of(&chat).await;
    let files = chat.files();
    match file.is_image {
        true => files.add_image_part(file.bytes, &file.name).await,
        false => files.add_file(file.bytes, &file.name).await,
    }
}

/// The prompts of the servers that run; with `start`, also of those that are switched on, which are started for it.
#[command(chat)]
pub async fn server_prompts(app: State<'_, App>, start: bool) -> Result<ServerPrompts> {
    Ok(app.tools.prompts(start).await?)
}

/// The text of a prompt of a server, filled in with these values by the names of its arguments.
#[command(chat)]
pub async fn server_prompt(
    app: State<'_, App>,
    server: String,
    name: String,
    values: Vec<(String, String)>,
) -> Result<String> {
    let values = values.into_iter().collect();
    Ok(app.tools.prompt(&server, &name, values).await?)
}

/// Asks about the calls of an answer again, whose process is gone; each is shown whole.
#[command(chat)]
pub async fn run_calls_again(app: State<'_, App>, answer: String) -> Result<ChatView> {
    app.chat_of(&answer).await.answers().run_calls_again(&answer).await
}

/// Begins the next answer without the results of calls that have none.
#[command(chat)]
pub async fn go_on_without_calls(app: State<'_, App>, answer: String) -> Result<ChatView> {
    app.chat_of(&answer).await.answers().go_on_without_calls(&answer).await
}

/// The calls that run, as far as their progress is known. Nothing of it is stored.
#[command(chat)]
pub fn running_calls(app: State<'_, App>) -> Vec<RunningCall> {
    let running = app.chat.running_calls();
    let list = running.borrow().clone();
    list
}

/// Brings the window in which calls wait to the front.
#[command(chat)]
pub async fn show_consent(app: AppHandle) -> Result<()> {
    window::show(&app, WindowName::Consent).map_err(failed(Reason::WindowSystem, "the window could not be opened"))
}

/// The calls that wait for the person.
#[command(consent)]
pub fn waiting_calls(app: State<'_, App>) -> Vec<WaitingCall> {
    app.tools.waiting()
}

/// The person's consent to a call that was shown.
#[command(consent)]
pub async fn approve_call(app: State<'_, App>, approval: CallApproval) -> Result<()> {
    Ok(app.tools.approve(approval).await?)
}

/// The person's refusal of a call that was shown, with a word for the model.
#[command(consent)]
pub fn refuse_call(app: State<'_, App>, answer: String, call: String, hash: String, word: String) -> Result<()> {
    Ok(app.tools.refuse(&answer, &call, &hash, word)?)
}

/// The requests of servers that wait for the person.
#[command(consent)]
pub fn waiting_elicitations(app: State<'_, App>) -> Vec<WaitingElicitation> {
    app.tools.elicitations()
}

/// Sends the values of a form, a JSON object as text, to the server that asked for them. What is wrong with them is
/// returned, and nothing was sent then.
#[command(consent)]
pub fn send_form(app: State<'_, App>, id: String, values: String) -> Result<Vec<FieldProblem>> {
    Ok(app.tools.send_form(&id, &values)?)
}

/// Opens the address that a server asks for in the browser, and tells the server.
#[command(consent)]
pub async fn open_elicited_address(app: State<'_, App>, id: String) -> Result<()> {
    // The one that is waiting, not one that a page names.
    open_link(app.tools.elicited_address(&id)?).await?;
    Ok(app.tools.address_opened(&id)?)
}

/// Tells the server that asks for something that the person declines.
#[command(consent)]
pub fn decline_elicitation(app: State<'_, App>, id: String) -> Result<()> {
    Ok(app.tools.decline(&id)?)
}

/// Servers, tools and consents. Nothing is started.
#[command(settings)]
pub async fn tools(app: State<'_, App>) -> Result<ToolsView> {
    Ok(app.tools.view().await?)
}

/// Adds a server, which is off, and returns its id. Secrets go to the keychain.
#[command(settings)]
pub async fn add_tool_server(app: State<'_, App>, setup: ToolSetup) -> Result<String> {
    Ok(app.tools.add(setup).await?)
}

/// Changes a server. A part without a value keeps its secret. With another command or other variables it is off.
#[command(settings)]
pub async fn change_tool_server(app: State<'_, App>, id: String, setup: ToolSetup) -> Result<()> {
    Ok(app.tools.change(&id, setup).await?)
}

/// Asks for a folder in the system's dialog, which the server is told of; false if the user chose none.
#[command(settings)]
pub async fn add_tool_root(window: WebviewWindow, handle: AppHandle, app: State<'_, App>, id: String) -> Result<bool> {
    let Some(folder) = question::choose_folder(&window, words::current(&handle).add_folder).await? else {
        return Ok(false);
    };
    app.tools.add_root(&id, &folder).await?;
    Ok(true)
}

/// Takes a folder from a server.
#[command(settings)]
pub async fn remove_tool_root(app: State<'_, App>, id: String, root: String) -> Result<()> {
    Ok(app.tools.remove_root(&id, &root).await?)
}

/// Servers in the configurations of other programs on this computer. Nothing is added.
#[command(settings)]
pub async fn found_tool_servers(app: State<'_, App>) -> Result<Vec<FoundServer>> {
    Ok(app.tools.found().await)
}

/// Servers in a pasted configuration. Nothing is added.
#[command(settings)]
pub fn read_tool_configuration(app: State<'_, App>, text: String) -> Result<Vec<FoundServer>> {
    Ok(app.tools.read_configuration(&text)?)
}

/// Lets the user choose a bundle in a dialog of the system and looks into it; null if they choose none. Nothing of it is
/// written, and nothing runs.
#[command(settings)]
pub async fn choose_tool_bundle(window: WebviewWindow, app: State<'_, App>) -> Result<Option<ToolBundle>> {
    let (chosen, answer) = tokio::sync::oneshot::channel();
    let words = words::current(window.app_handle());
    let dialog = window.dialog().file().set_parent(&window);
    let dialog = dialog.add_filter(words.bundle_kind, &["mcpb", "dxt"]);
    // The user may have closed the window; then nobody waits for the answer.
    dialog.pick_file(move |path| drop(chosen.send(path)));
    let Some(file) = answer.await.ok().flatten() else {
        return Ok(None);
    };
    let what = "this is no file of this computer";
    let file = file.into_path().map_err(failed(Reason::FileNotOpened, what))?;
    Ok(Some(app.tools.look_into_bundle(file).await?))
}

/// Adds the server of the bundle that was looked into, which is off, and returns its id. Sensitive values go to the
/// keychain.
#[command(settings)]
pub async fn add_tool_bundle(
    app: State<'_, App>,
    hash: String,
    name: String,
    values: Vec<BundleValue>,
) -> Result<String> {
    Ok(app.tools.add_bundle(&hash, &name, values).await?)
}

/// Switches a server on or off. Asks in a dialog of the system, which shows the command, before it is on; false if the
/// user declines.
#[command(settings)]
pub async fn switch_tool_server(window: WebviewWindow, app: State<'_, App>, id: String, on: bool) -> Result<bool> {
    if !on {
        app.tools.switch_off(&id)?;
        return Ok(true);
    }
    let (name, command) = app.tools.command_of(&id)?;
    let words = words::current(window.app_handle());
    let (title, consequences) = match tools::configuration::is_address(&command) {
        true => (words.connect_tool_server_question, words.connect_tool_server_text),
        false => (words.run_tool_server_question, words.run_tool_server_text),
    };
    let question = question_about(title, &[&name, &command, consequences], words.switch_on, words.cancel);
    if question::ask(&window, question).await != Answer::Yes {
        return Ok(false);
    }
    app.tools.switch_on(&id, &command)?;
    // Its tools are known when the page lists them; the reason why it does not start is its state.
    let tools = app.tools.clone();
    tauri::async_runtime::spawn(async move { tools.start(&id).await });
    Ok(true)
}

/// Removes a server with its rules and secrets.
#[command(settings)]
pub async fn remove_tool_server(app: State<'_, App>, id: String) -> Result<()> {
    Ok(app.tools.remove(&id).await?)
}

/// Ends a server and starts it anew.
#[command(settings)]
pub async fn restart_tool_server(app: State<'_, App>, id: String) -> Result<()> {
    Ok(app.tools.restart(&id).await?)
}

/// The last lines of a server's standard error.
#[command(settings)]
pub fn tool_server_log(app: State<'_, App>, id: String) -> Vec<String> {
    app.tools.log(&id)
}

/// Stores the person's word about a tool; null takes it back.
#[command(settings)]
pub fn set_tool_rule(app: State<'_, App>, tool: ToolRef, rule: Option<ToolRule>) -> Result<()> {
    Ok(app.tools.set_rule(&tool, rule)?)
}

/// Takes back every consent for a tool, or those for this host.
#[command(settings)]
pub async fn revoke_tool_grant(app: State<'_, App>, tool: ToolRef, host: Option<String>) -> Result<()> {
    Ok(app.tools.revoke(&tool, host.as_deref()).await?)
}

/// Switches one of Ponder's own tools that reach the internet on or off.
#[command(settings)]
pub fn switch_own_tool(app: State<'_, App>, tool: String, on: bool) -> Result<()> {
    Ok(app.tools.switch_own_tool(&tool, on)?)
}

/// Chooses the search engine; its key goes to the keychain. Null chooses none.
#[command(settings)]
pub async fn set_web_search(app: State<'_, App>, setup: Option<WebSearchSetup>) -> Result<()> {
    Ok(app.tools.set_web_search(setup).await?)
}

/// Signs in to a server at an address in the browser, and connects once it came back. Asks in a dialog of the system, which
/// shows the page, before it opens; false if the user declines, or began anew.
#[command(settings)]
pub async fn sign_in_tool_server(
    window: WebviewWindow,
    app: State<'_, App>,
    id: String,
    client: Option<ToolClient>,
) -> Result<bool> {
    let (name, _) = app.tools.command_of(&id)?;
    let words = words::current(window.app_handle());
    let browser = Browser {
        open: Box::new(move |page| Box::pin(async move { opens(&window, &name, &page).await })),
        done: words.signed_in_page.to_owned(),
        refused: words.sign_in_refused_page.to_owned(),
    };
    Ok(app.tools.sign_in(&id, client, browser).await?)
}

/// Forgets the tokens of a server and who Ponder is to it.
#[command(settings)]
pub async fn sign_out_tool_server(app: State<'_, App>, id: String) -> Result<()> {
    Ok(app.tools.sign_out(&id).await?)
}

/// Opens the page at which somebody signs in to a server, if the user agrees.
async fn opens(window: &WebviewWindow, name: &str, page: &str) -> bool {
    let words = words::current(window.app_handle());
    // The rest of the address is long and says nothing to a person.
    let shown = page.split('?').next().unwrap_or(page);
    let question = question_about(
        words.sign_in_question,
        &[name, shown, words.sign_in_text],
        words.open_page,
        words.cancel,
    );
    question::ask(window, question).await == Answer::Yes
        && link::understood(page).is_ok_and(|page| tauri_plugin_opener::open_url(&page, None::<&str>).is_ok())
}

/// A question about texts of strangers.
fn question_about(title: &'static str, texts: &[&str], yes: &'static str, no: &'static str) -> Question {
    // GTK takes a text as a format.
    let percent = if cfg!(target_os = "linux") { "％" } else { "%" };
    let shown = texts.iter().map(|text| visible(text).replace('%', percent));
    Question {
        title,
        text: shown.collect::<Vec<_>>().join("\n\n"),
        yes,
        more: None,
        no,
    }
}
