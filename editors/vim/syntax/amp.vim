if exists('b:current_syntax')
  finish
endif
syntax keyword ampControl repeat in if else return as because sharing
syntax keyword ampOperatorWord and or not
syntax keyword ampConstant none true false N inf
syntax keyword ampType f32 f16 bf16 tf32 i32 i64 fp32 fp16 bool int float pair dims shape symbol string
syntax match ampDeclaration /^\s*\zs\(inline\s\+\)\?\(amp\|include\|const\|size\|inline\|block\|model\|train\|precision\|param\|state\|update\|init\|input\|loss\|metric\|group\|checkpoint\|require\)\>\(\s*[=,:.]\)\@!/
syntax match ampCall /\<\h\w*\ze\s*(/
syntax match ampNumber /\<\d\+\(\.\d\+\)\?\([eE][+-]\?\d\+\)\?\>/
syntax region ampString start=/"/ skip=/\\./ end=/"/ oneline
syntax match ampComment /#.*$/ contains=@Spell
highlight default link ampControl Statement
highlight default link ampOperatorWord Operator
highlight default link ampConstant Constant
highlight default link ampType Type
highlight default link ampDeclaration Keyword
highlight default link ampCall Function
highlight default link ampNumber Number
highlight default link ampString String
highlight default link ampComment Comment
let b:current_syntax = 'amp'
