//! Words that say nothing of what a question is about. Few passages have the words of *how do I*, so that to an index
//! they look rare, and as important as those that matter.

use std::collections::HashSet;
use std::sync::LazyLock;

use sqlite::words::fold;

/// The words of English, German, French, Italian, Dutch, Portuguese and Russian, whose lists were measured.
const LISTS: [&str; 7] = [
    "a about all an and any are aren as at be been but by can cannot could couldn d did didn do does doesn don for
     from had has have having he her here his how i if in into is isn it its ll m may me more most must my no not of
     on only or our own re s same shall she should shouldn so some such t than that the their them then there these
     they this those to too us ve very was wasn we were what when where which while who whom whose why will with won
     would wouldn you your",
    "aber alle als also am an auch auf aus bei bin bis da damit dann das dass dem den der des dich die dies diese
     diesem diesen dieser dieses dir doch du durch ein eine einem einen einer eines er es für gibt hat habe haben ich
     ihr im in ist ja kann kein keine können man mein meine meinen meiner mich mir mit muss nach nicht noch nur ob
     oder ohne sein sich sie sind so soll über um und uns unter vom von vor wann warum was welche welchem welchen
     welcher welches wenn wer werden wie wieso wir wird wo zu zum zur",
    "à au aucun aussi aux avec c ce ces cet cette comment d dans de des du elle elles en est et être eux faire fait
     faut il ils j je l la le les leur leurs lors ma mais me mes moi mon n ne nos notre nous on ont où ou par pas
     peut peux plus pour pourquoi puis qu quand que quel quelle quelles quels qui quoi s sa sans se ses si son sont
     sur t ta te tes ton tu un une vos votre vous y",
    "a ad agli ai al all alla alle allo anche c che chi ci come con cosa cui d da dagli dai dal dall dalla dalle dei
     del dell della delle dello di do dove e è ed essere gli ha hanno ho i il in io l la le lo ma mi mia mio ne negli
     nei nel nell nella nelle no noi non o per perché più può posso qual quale quali quando quanti quanto quella
     quelle quelli quello quest questa queste questi questo s se si sono su sui sul sull sulla tra tutti tutto un una
     uno",
    "aan al alle als bij dan dat de deze die dit doe doen door een en er geen gaat hebben heb heeft het hij hoe
     hoeveel ik in is je kan kunnen maar men met mij mijn moet na naar niet nog of om onder ons op over te tot u uit
     van voor waar waarom waarvoor wanneer was wat we welk welke wie wij worden wordt zal ze zich zijn zo zou",
    "a ao aos à às as até com como da das de dela dele delas deles do dos e é ela ele em entre essa esse esta está
     estas este estes eu foi há isso isto já mais mas me meu minha na não nas nem no nos nós num numa o onde os ou
     para pela pelas pelo pelos por porque porquê posso pode qual quais quando quantas quantos que quê quem se sem
     ser seu são só sua também tem tenho ter um uma você",
    "а без более бы был была были было быть в вам вас во вот все вы где да для до его ее если есть же за и из или им
     их к как какая какие какой когда кто ли меня мне можно мой моя мы на над не него нет ни но о об он она они оно
     от по почему при с со так также такое такой там то того тоже только у уже чем что чтобы это этого этот эта эти я",
];

static FOLDED: LazyLock<[HashSet<String>; 7]> =
    LazyLock::new(|| LISTS.map(|words| fold(words).text.split_whitespace().map(str::to_owned).collect()));

/// The words of the language that a question with these words is in, all of them folded. Languages share words with
/// different meanings (German has an article *die*), so only one list counts: the one with most of the words.
pub(super) fn of<'a>(question: impl Iterator<Item = &'a str> + Clone) -> &'static HashSet<String> {
    let count = |list: &HashSet<String>| question.clone().filter(|word| list.contains(*word)).count();
    // The first of equal ones, therefore backwards.
    let lists = FOLDED.iter().rev();
    lists.max_by_key(|list| count(list)).unwrap_or(&FOLDED[0])
}
