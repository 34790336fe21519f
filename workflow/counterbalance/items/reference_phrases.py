"""Words of many languages by which an option speaks of other options; regular expressions without case or accents.

English, German, French, Spanish, Italian, Portuguese, Dutch, Russian, Chinese, Japanese and Korean.
"""

_EN_NOUN = r"(?:answers?|options?|choices?|alternatives?|responses?|possibilities|ones?)"
_EN_SOME = (
    r"(?:all|none|any|both|neither|either|some|each|most|one|two|three|several|more than one|only one|not any|"
    r"at least one|two or more|every one)(?: one)?"
)
_DE_NOUN = r"(?:antwort(?:en|moglichkeiten)?|aussagen|optionen|moglichkeiten|alternativen)"
_FR_NOUN = r"(?:reponses?|propositions?|options?|choix|affirmations?|possibilites)"
_ES_NOUN = r"(?:respuestas?|opcion(?:es)?|alternativas?)"
_IT_NOUN = r"(?:rispost[ae]|opzion[ei]|alternativ[ae])"
_PT_NOUN = r"(?:respostas?|alternativas?|opc(?:ao|oes))"
_NL_NOUN = r"(?:antwoord(?:en)?|opties?|mogelijkheden|alternatieven)"
_RU_NOUN = r"(?:ответ\w*|вариант\w*)"

ANYWHERE = (
    rf"\b{_EN_SOME} of the (?:above|foregoing|aforementioned)\b(?!-(?!mentioned|named|listed))",
    r"\b(?:alle|keine[rs]?|beide|jede[rs]?|mehrere|nichts|alles)(?: der| von den| von| des| vom)? "
    r"(?:oben ?\w+|obig\w+|vorstehend\w+|vorgenannt\w+)\b",
    r"\b(?:tou(?:s|tes?)|tout|aucune?|rien|chacune?|les deux)\b[^.]{0,30} (?:ci-dessus|qui precede)\b",
    r"\b(?:tod[ao]s|ningun[ao]?|cualquiera|amb[ao]s|algun[ao]s?)(?: de)?(?: l[ao]s)?(?: \w+)? anteriores\b",
    r"\b(?:tutt[ei]|nessun[ao]|entramb[ei]|ciascuna)(?: (?:delle|dei|di|le|i))?(?: \w+)? "
    r"(?:precedenti|sopra\w*|suddett[ei]|di cui sopra)\b",
    r"\b(?:tod[ao]s|nenhuma?|ambas|ambos|qualquer)(?: uma)?(?: d?[ao]s)?(?: \w+)? (?:anteriores|acima)\b",
    r"\b(?:alles?|al|geen(?: enkele?)?|beide|elk)(?: (?:van|de|het|deze))*(?: \w+)? "
    r"(?:boven(?:staande|genoemde|vermelde)|voorgaande)\b",
    r"\bвыше(?:перечисленн|указанн|назван|упомянут)\w*",
    r"^以上(?!的?人|年|岁).{0,12}$",
    r"^(?:上述|前述|上列|上面|前面).{0,4}(?:皆|均|都|全|所有|任何|任一|各项|各項|选项|選項|答案).{0,6}$",
    r"^(?:上記|前記).{0,4}(?:すべて|全て|全部|いずれ|どれ|どちら|両方|選択肢).{0,10}$",
    r"^위(?:의)? ?(?:모두|모든|어느|보기|답).{0,10}$",
)
"""Found anywhere in an option."""

WHOLE = (
    rf"{_EN_SOME}(?: of)?(?: the)? (?:above|foregoing|preceding|previous|aforementioned)(?: {_EN_NOUN})?",
    rf"{_EN_SOME} of the (?:others?|rest|following|(?:other |given |listed |remaining )?{_EN_NOUN})",
    rf"(?:all|both|neither|either)(?: the)?(?: other| remaining| given)? {_EN_NOUN}",
    rf"(?:the )?(?:first|second|third|fourth|fifth|last|next|previous|preceding|other|remaining)(?: two| three)? "
    rf"{_EN_NOUN}(?: above| below)?",
    rf"the (?:{_EN_NOUN} )?(?:above|below)",
    r"(?:same )?as above|see above",
    rf"no (?:other |correct |right ){_EN_NOUN}(?: is| are)?(?: given| listed)?",
    rf"no {_EN_NOUN} (?:is|are) (?:correct|right|true)",
    rf"(?:alle|keine[rs]?|beide|jede|mehrere)(?: der| von den| von| dieser| diese)?(?: genannten| anderen| "
    rf"aufgefuhrten| angegebenen| vorherigen)?(?: {_DE_NOUN})",
    r"(?:alle|keine[rs]?|beide|jede|mehrere)(?: der| von den| von)? (?:genannten|aufgefuhrten|angegebenen|vorherigen)",
    r"alles (?:genannte|davon)|nichts davon|nichts von alledem|keine[rs]? (?:davon|von beiden|von diesen)",
    r"weder noch|weder das eine noch das andere|beides?",
    rf"(?:toutes|tous)(?: ces| les)(?: autres)? (?:{_FR_NOUN}|precedentes?)(?: precedentes| proposees)?",
    rf"aucune?(?: de ces| des| de| d')? ?(?:autres )?(?:{_FR_NOUN}|precedente?s|entre (?:elles|eux)|ce(?:ux|lles)-ci)"
    rf"(?: precedentes| proposees| n')?",
    r"les deux|ni l'une? ni l'autre|l'une? ou l'autre|tout cela|rien de tout cela|aucune d'elles|aucun d'eux",
    rf"(?:tod[ao]s|ningun[ao]?|cualquiera|amb[ao]s)(?: de)?(?: l[ao]s| estas)?(?: otras)? {_ES_NOUN}"
    rf"(?: mencionadas| indicadas)?",
    r"(?:todas|ninguna|cualquiera) (?:de )?(?:las |l[ao]s )?(?:mencionadas|indicadas|precedentes|otras)",
    r"ningun[ao] de (?:ellas|ellos|estas|estos|las dos|los dos)|amb[ao]s|l[ao]s dos|ni una ni otra|ni uno ni otro",
    rf"(?:tutte|nessuna|entrambe)(?: (?:delle|di|le|queste))*(?: altre)? {_IT_NOUN}(?: elencate| indicate)?",
    r"nessun[ao] di (?:queste|questi|quelle|quelli|loro)|tutte queste|entramb[ei]|ne l'un[ao] ne l'altr[ao]",
    rf"(?:todas|nenhuma|ambas|qualquer uma)(?: d?as)?(?: outras)? {_PT_NOUN}(?: mencionadas| citadas)?",
    r"nenhum[ao]? (?:del[ao]s|dest[ao]s|dess[ao]s)|n\. ?d\. ?a\.?|ambas|ambos|as duas|nem uma nem outra",
    rf"(?:alle|geen(?: van)?|geen enkele?|beide)(?: (?:de|deze|andere))* {_NL_NOUN}",
    r"(?:alle|geen van)(?: de)? genoemde|geen van (?:deze|beiden?|allen)|beide",
    rf"(?:все|ни один(?: из)?|оба|любой(?: из)?|нет (?:верного|правильного))(?: этих| данных| других)? {_RU_NOUN}",
    r"(?:все|ничего|ни одно|любое)(?: из)? перечисленн\w+|ни один из (?:них|перечисленных)|оба|обе",
    r"и то,? и другое|ни то,? ни другое",
    r"(?:全部|全|都|皆|均)(?:都|皆)?(?:是|对|對|正确|正確|不是|不对|不對|非|错|錯|有可能)",
    r"(?:两者|兩者|二者)(?:都|皆|均|全).{0,4}|(?:所有|其他|其它)(?:选项|選項|答案).{0,6}|[没沒无無]有?正[确確]答案",
    r"(?:どれ|いずれ|どちら)(?:も|でも|にも).{0,8}|両方(?:とも)?(?:正しい|である|です)?|該当なし|正解(?:は)?(?:なし|ない)",
    r"(?:すべて|全て|全部)(?:の選択肢)?(?:が)?(?:正しい|当てはまる|該当する)|この中に(?:は)?(?:ない|ありません)",
    r"모두 (?:맞다|맞음|정답|해당|아니다|옳다)|둘 다.{0,6}|정답 없음",
)
"""The whole option, but for words such as "are correct" after it."""

VAGUE = (
    r"(?:all|none|any|both|neither|either)(?: one)? of (?:these|those|them|the two)"
    rf"(?: {_EN_NOUN})?",
    r"both|neither(?: one)?|either(?: one)?",
    r"(?:all|none|both|neither)(?: of (?:these|those|them))? (?:is|are) "
    r"(?:correct|true|right|false|incorrect|wrong|valid|possible)",
    r"(?:todas|todos|ninguna|tutte|nessuna|nenhuma|toutes|aucune|alle|keine) "
    r"(?:n')?(?:es|son|e|sono|sao|estao|esta|sont|est|sind|ist|zijn) (?:\w+ )?\w+",
)
"""The whole option; but where the stem lists numbered statements, or others say "some of them", these mean those."""

BARE_FEMININE = ("ninguna", "nenhuma", "nessuna", "aucune")
"""Agree with the word for answer, and so stand for "no answer", unless the other options are quantities."""

QUANTIFIERS = (
    "some|most|many|few|several|half|one|two|three|four|exactly|only|at least",
    "una|uno|dos|tres|algunas|muchas|pocas|due|tre|alcune|molte|poche",
    "uma|duas|algumas|muitas|poucas|une|deux|trois|quelques|plusieurs|certaines",
)

NOUNS = (
    _EN_NOUN,
    _DE_NOUN,
    _FR_NOUN,
    _ES_NOUN,
    _IT_NOUN,
    _PT_NOUN,
    _NL_NOUN,
    _RU_NOUN,
    "选项",
    "選項",
    "答案",
    "選択肢",
)

ONLY = (
    "only|just|nur|ausser|seulement|uniquement|solo|solamente|soltanto|apenas|somente|alleen|только|只有|仅|僅",
    r"(?:all|everything)(?: of the above)? (?:except|but)",
    "same as",
    "alle(?:s)? ausser",
    r"tou(?:s|tes?|t) sauf",
    "tod[ao]s (?:menos|excepto|exceto)",
    "tutte tranne",
    "все,? кроме",
)
"""Before one letter or several."""

LEADS = (
    "both|either|neither|sowohl|weder|entweder|beide|ni|soit|tanto|ambas|sia|ne|nem|zowel|noch|ofwel|либо|ни|как|и",
    "the|die|der|das|la|el|il|le|les|las|los|de|het",
    "(?:any|one|all) of",
    "a la fois",
)
"""Before several letters."""

CONNECTIVES = (
    "and|or|nor|to|through|und|oder|noch|sowie|et|ou|ni|y|o|u|e|como|che|sia|ne|nem|quanto|en|of|als|и|или|ни",
    "and/or",
    "as well as",
    "but not",
    "als auch",
    "wie auch",
    "так и",
)
"""Between letters, with spaces around."""

TAILS = (
    "only|alone|both|together|apply|correct|true|right|stimmen|stimmt|uniquement|seulement|solamente|solo",
    "but not both",
    r"(?:is|are|was|were|can be|could be|may be|might be|would be)(?: all| both| each| equally| not)* "
    r"(?:correct|true|right|false|incorrect|wrong|valid|invalid|possible|acceptable|applicable|accurate|involved)",
    r"(?:ist|sind)(?: beide| alle| nicht)? (?:richtig|falsch|korrekt|wahr|zutreffend|moglich)",
    "treffen(?: beide| alle| nicht)? zu|trifft(?: nicht)? zu",
    r"(?:n')?(?:est|sont)(?: pas| toutes)? (?:correcte?s?|exacte?s?|vraie?s?|justes?|fausses?|bonnes?|possibles?)",
    r"(?:es|son)(?: todas| ambas)? (?:correct[ao]s?|verdader[ao]s?|fals[ao]s?|ciert[ao]s?|valid[ao]s?|posibles?)",
    r"(?:e|sono) (?:corrett[aeio]|giust[aeio]|ver[aeio]|esatt[aeio]|fals[aeio]|valid[aeio])",
    r"(?:esta|estao|e|sao) (?:corret[ao]s?|cert[ao]s?|verdadeir[ao]s?|fals[ao]s?|errad[ao]s?)",
    "(?:is|zijn) (?:juist|correct|goed|waar|fout|onjuist)",
    r"(?:не ?)?(?:верн|верен|правил[еь]?н|подход)\w*",
    "(?:都|皆|均|全)?(?:是|对|對|正确|正確|可|不是|不对|错)",
    "(?:の|は)?(?:両方|いずれか|どちらか|いずれも|どちらも)(?:正しい|でもない)?",
)
"""After the letters, or after a phrase."""

JOINERS = "和与與及或跟同、と,;&"
"""Between letters, without spaces."""

CYRILLIC_LETTERS = "абвгд"
"""Letters by which Russian texts count options."""
