"""English words by which a reply shows where its answer stands. See `lexicon.Lexicon` for the fields."""

from counterbalance.reading.lexicon import Lexicon

ENGLISH = Lexicon(
    nouns="answer|answers|ans|final answer|final answers|final|final verdict|final choice|final decision|choice|"
    "option|verdict|selection|response|solution|pick|letter|conclusion|judgment|judgement|decision|result|guess|"
    "winner|vote|preference|answer choice|answer option|answer letter|answer key|correct one|right one|best one|"
    "better one|correct answer|correct option|correct choice|chosen option|chosen answer|label|ans.",
    copulas="is|was|are|be|being|equals|remains|'s|seems|seemed|appears|appeared|becomes|reads",
    fillers="the|a|option|options|choice|letter|answer|response|assistant|model|candidate|label|definitely|clearly|"
    "probably|likely|therefore|thus|hence|indeed|still|simply|just|actually|obviously|certainly|surely|"
    "also|now|then|number|that|it|it'd|only|as follows|to be|both|either|correct|right|"
    "most|must|should|would|will|has|have|definitively|best|better|really|again|clear|clearly|final|"
    "given by|represented by|my|i think|i believe|i'd say|of course|in fact|in the end|so",
    picks="i choose|i chose|i'd choose|i would choose|i'll choose|i pick|i picked|i'd pick|i would pick|i'll pick|"
    "i select|i selected|i'd select|i'll select|i go with|i'd go with|i'll go with|go with|going with|going for|"
    "went with|i'd go for|i'll go for|choose|pick|select|chose|picked|selected|choosing|picking|selecting|opt for|"
    "vote for|settle on|stick with|sticking with|prefer|i say|i'd say|i would say|i think|i believe|i thought|"
    "i guess|i'd guess|i answer|i'd answer|i conclude|we conclude|i lean to|i lean toward|i lean towards|lean to|"
    "lean toward|lean towards|leaned to|leaned toward|leaned towards|leaning to|leaning toward|leaning towards|"
    "make it|make that|points to|i meant|change my answer to|changing my answer to|switch to|switching to",
    statements="it is|it's|it must be|it has to be|it should be|it would be|it will be|this is|that is|that's|"
    "it was|it might be|it may be|it could be|it seems to be|it appears to be|must be",
    good="correct|right|answer|choice|pick|best|better|winner|final answer|correct answer|right answer|"
    "correct one|right one|best one|better one|best answer|best choice|best option|correct option|"
    "correct choice|better answer|better response|superior|preferable|stronger",
    items="option|choice|letter|response|assistant|answer choice|answer option|candidate|model|label|number|"
    "statement|system",
    asides="to|for|of|in|among|from|here|on|between",
    bad="wrong|incorrect|not|false|trap|distractor|impossible|ruled out|out|unlikely|tempting|excluded|"
    "eliminated|never|mistaken|worse|incorrect answer|wrong answer|invalid|no longer|neither",
    affirm="wins|fits best|it is|is the one",
    deny="isn't|wasn't|aren't|can't be|cannot be|can not be|won't|wouldn't|couldn't be|does not|doesn't|"
    "can be ruled out|can be excluded|can be eliminated|fails|must be wrong|must be false|would be wrong|"
    "would be incorrect|would be a mistake|would not|may be ruled out|should be ruled out",
    negations="not|isn't|wasn't|aren't|weren't|cannot|can't|can not|never|neither|no longer|nor|won't|wouldn't|"
    "couldn't|shouldn't|don't|doesn't|didn't|do not|does not|did not|hardly|anything but|rejected|reject|exclude|"
    "excluded|eliminate|eliminated|rule out|ruled out|unlikely|avoid|ruling out|other than|except|refuse|impossible|no way|doubt|doubt that",
    disowned="wrong|incorrect|false|common|tempting|trap|naive|popular|bad|worst|worse|second best|alternative|"
    "other|another|opposite|example|sample|rejected|expected by many|so-called",
    hedges="might|may|could|maybe|perhaps|possibly|possible|first|initially|initial|at first|originally|original|"
    "tentative|tentatively|previous|previously|earlier|leaned|leaning|lean|thought|was|seemed|appeared|not sure|"
    "not certain|unsure|tempted|candidate answer|candidate answers|preliminary",
    unsure="not sure|not certain|not entirely sure|not completely sure|not entirely certain|not 100% sure|"
    "cannot be sure|can't be sure|cannot be certain|can't be certain|cannot say for sure|can't say for sure|"
    "don't know for sure|no doubt|without a doubt|without doubt|beyond doubt|beyond a doubt|not only|cannot be fully certain|if i had to choose|if i had to pick|"
    "if i had to guess|if i must choose|if i must pick|if forced|if i have to choose|if i have to pick|if so",
    others="if|whether|suppose|supposing|assume|assuming|unless|people|students|some say|some would|some might|"
    "many think|many say|many would|many might|most people|others|someone|one might|one may|one could|"
    "you might|you may|you could|you think|they say|they think|they may|they might|he says|she says|to think|to say|to choose|to pick|to select|to believe|"
    "to assume|as if|claims that|claim that|claimed that|says that|suggests that",
    attitudes="think|believe|say|agree|claim|conclude|consider|feel|mean|want to|going to|choose|pick|select|call|"
    "our|be|say that|true that|see how|recommend|advise|correctly|wrongly|ever|argue|expect",
    concluding="so|therefore|thus|hence|consequently|accordingly|in conclusion|to conclude|as a result|"
    "we conclude|i conclude|which means|overall|in summary",
    final="final|finally|ultimately|in the end|conclusion|definitive|definitively|settled|corrected",
    retractions="wait|no wait|actually|recheck|re-check|rechecking|reconsider|reconsidering|correction|"
    "on second thought|on second thoughts|sorry|oops|scratch that|i was wrong|my mistake|i made a mistake|"
    "i made an error|hold on|i mean|i meant|make that|make it|change my answer|change my mind|changed my mind|on reflection|"
    "upon reflection|let me double check|let me double-check|let me check again|let me redo|hmm|no,|no.|no!|no;|no:|nope|"
    "that's wrong|that is wrong|that's not right|that is not right|revised|i misread|i misspoke|strike that|"
    "i take that back|ignore that|correcting myself",
    withdrawals="wait|no wait|actually wait|recheck|let me recheck|let me re-check|let me reconsider|"
    "let me double check|let me double-check|let me check again|let me redo|let me rethink|scratch that|"
    "correction|on second thought|on second thoughts|hold on|oops|no, that's|no, that is|no, this is|no, wait|"
    "that's wrong|that is wrong|that's not right|that is not right|i was wrong|i misread|strike that|"
    "i take that back|i made a mistake|i made an error|hmm|actually, no|no, i|no.",
    joins="and|or|and/or|as well as|versus|vs|vs.|nor|along with",
    pivots="but|but rather|rather|instead|it is|it's|but instead",
    because="because|due to|owing to|given that",
    going_on="since|as|based on|by definition|in this|in the|from the|for the|with the|when|where|although|though|"
    "even though|but|and|which|over|whereas|the|this|these|it|its|we|you|there|they|"
    "here|unless|until|after|before|i think|i believe|i guess|if the|if we|if you|if it|so the|so i|so it|that is|"
    "both|as it|by the|among|of the|on the|to the|only if|are|at the|per the|all|any|no other",
    contrasts="rather than|instead of|and not|as opposed to",
    closing="clearly|definitely|obviously|certainly|indeed|again|then|overall|anyway|now|here|probably|i think|"
    "i guess|i believe|of course|for sure|too|please|thanks|thank you|final answer|it is",
    plural="are|both|were|seem|look|together|equally|all|alike|have|could|might|can",
    both="both|both are|both of them|both of these|both options|both answers|both choices|both responses|all|"
    "all of them|all of these|all of the above|all the above|all options|all answers|all are|either|either one|"
    "either of them|any of them|any of the above|both fine|all the options|all of the options|either is|all four|"
    "all three|both statements",
    none="none|none of them|none of these|none of the above|no option|no correct answer|no answer|neither|"
    "neither one|neither of them|neither of these|none of the options|none of the answers|no correct option|"
    "none is|none are|nothing|there is no correct answer|there is no right answer",
    equal="equal|equally|a tie|tie|tied|a draw|identical|the same|equivalent",
    unable="i can't|i cannot|i can not|i won't|i will not|i'm unable to|i am unable to|i'm not able to|"
    "i am not able to|i decline to|i refuse to|i'm not going to|i am not going to|i'm not comfortable|"
    "i am not comfortable|i'm not allowed to|i am not allowed to|i'm not permitted to|i couldn't|i could not|"
    "we can't|we cannot|we are unable to|it would be inappropriate to|it is not appropriate to|can't really",
    deeds="help|assist|answer|answering|provide|providing|choose|choosing|comply|fulfill|fulfil|do that|do this|"
    "engage|respond|discuss|select|pick|make that|make this|support|participate|continue|give|share|offer|"
    "accommodate|determine|decide|complete|express|judge|say which|take sides|giving|making",
    refusals="i must decline|i decline|i have to decline|i refuse|i'd rather not|i would rather not|i prefer not to|"
    "against my guidelines|unable to help|unable to assist|unable to answer|can't help with|cannot help with|"
    "can't assist with|cannot assist with|can't answer|cannot answer|i have no opinion",
    sorry="i'm sorry|i am sorry|sorry|i apologize|i apologise|my apologies|apologies|as an ai|"
    "as a language model|unfortunately",
    subjects="option|choice|answer|response|assistant|letter|model|candidate|label|so|that|therefore|only|because|"
    "and|but|think|believe|hence|thus|say|clearly|conclude|since|then|means|believe that|yes|ok|is|overall|"
    "which|however|statement|verdict|while|although|final|why|prefer|finally|guess|or|sure|certain|as|system|nor",
    clause_breaks="but|so|and|because|since|therefore|thus|hence|then|although|though|yet|however|still|while|"
    "means|whereas",
    prefaces="sure|okay|ok|yes|yeah|well|definitely|probably|most likely|likely|maybe|perhaps|clearly|obviously|certainly|alright|absolutely|easy|simple|indeed",
)
