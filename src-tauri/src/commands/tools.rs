//! Tools: servers, rules, consents, and calls that wait. Only the consent window may approve a call, and only a dialog of
//! the system switches a server on or opens the page at which somebody signs in: no page gains anything by calling the
//! other commands.

use api::{
    CallApproval, ChatView, FoundServer, ToolClient, ToolRule, ToolSetup, ToolsView, WaitingCall, WebSearchSetup,
    WindowName,
};
use command::command;
use protocol::{Reason, Result, ToolRef};
use tauri::{AppHandle, Manager, State, WebviewWindow};
use tools::oauth::Browser;
use tools::visible::visible;

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
    // What stands behind the question mark is long and says nothing to a person.
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
