# amp_add_model(TARGET FILE.amp [STATIC [SYMBOL name] [EMIT o|c]]
#               [NAME name] [OUTPUT file] [PRECISION fp16|bf16|tf32|fp32] [POLICY name|file]
#               [DEFINES NAME=VALUE...] [OPTIONS option...])
#
# Compiles a model when the build does, and again when it, a file that it includes, its policy or ampc has changed.
#
# TARGET    An executable or library that exists: the model is built before it, and its sources see the model's path as
#           AMP_MODEL_<NAME>, a string ("mlp.amp": AMP_MODEL_MLP). Or a new name: a target of its own, built by default;
#           link it to a program, target_link_libraries(app PRIVATE mlp), for the same.
# STATIC    The model is linked into TARGET instead, or is a static library of the new name. There is no file to find:
#           AMP_STATIC_MODEL(<NAME>_model); declares it, amp_model_from_static(<NAME>_model, ...) opens it.
# SYMBOL    The model's name in the program instead of <NAME>_model. Models of one program need different ones.
# EMIT      What ampc writes: an object with each instruction set (o, the default), or one C file (c) that is compiled
#           as the project's own sources are, for one processor.
# NAME      The model's name in the file and the macro; the default is FILE without its ending.
# OUTPUT    Where the model is written; the default is NAME.so (.o, .c) in the current binary folder. Without STATIC
#           the target has it as the property AMP_MODEL_<NAME>, for install(FILES).
# OPTIONS   Further options of ampc: --target cpu, --isa v3, ...
#
# The C compiler that ampc starts is the project's, CMAKE_C_COMPILER, where the project has C.

# Lists of included files are read by CMake 3.20 and later; an older one knows of FILE and POLICY alone.
cmake_policy(PUSH)
if(POLICY CMP0116) # Ninja: names in the list may be absolute
    cmake_policy(SET CMP0116 NEW)
endif()

# Tells programs where the model is.
function(_ampc_attach target name output kind)
    string(MAKE_C_IDENTIFIER "${name}" identifier)
    string(TOUPPER "AMP_MODEL_${identifier}" macro)
    target_compile_definitions(${target} ${kind} "${macro}=\"${output}\"")
    set_target_properties(${target} PROPERTIES ${macro} "${output}")
endfunction()

# A model that is a file: built before the target.
function(_ampc_add_file target name output)
    if(TARGET ${target})
        string(MAKE_C_IDENTIFIER "${target}_${name}" built)
        add_custom_target(${built} DEPENDS "${output}")
        add_dependencies(${target} ${built})
        _ampc_attach(${target} "${name}" "${output}" PRIVATE)
    else()
        string(MAKE_C_IDENTIFIER "${target}_model" built)
        add_custom_target(${built} ALL DEPENDS "${output}")
        add_library(${target} INTERFACE)
        add_dependencies(${target} ${built})
        _ampc_attach(${target} "${name}" "${output}" INTERFACE)
    endif()
endfunction()

# A model that is linked: a static library of its object or C file.
function(_ampc_add_linked target name output emit)
    set(library "${target}")
    if(TARGET ${target})
        string(MAKE_C_IDENTIFIER "${target}_${name}" library)
    endif()
    add_library(${library} STATIC "${output}")
    if(emit STREQUAL "c")
        target_compile_options(${library} PRIVATE -std=gnu11 -O1 -w -fno-math-errno)
        set_target_properties(${library} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    else()
        set_source_files_properties("${output}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
        set(language CXX)
        if(CMAKE_C_COMPILER)
            set(language C)
        endif()
        set_target_properties(${library} PROPERTIES LINKER_LANGUAGE ${language})
    endif()
    if(NOT library STREQUAL target)
        # Not target_link_libraries, which the project may call with or without keywords.
        set_property(TARGET ${target} APPEND PROPERTY LINK_LIBRARIES ${library})
        set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES "$<LINK_ONLY:${library}>")
    endif()
endfunction()

function(amp_add_model target file)
    cmake_parse_arguments(PARSE_ARGV 2 model "STATIC" "NAME;OUTPUT;PRECISION;POLICY;SYMBOL;EMIT" "DEFINES;OPTIONS")
    set(called "amp_add_model(${target} ${file})")
    if(model_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "${called}: unknown argument ${model_UNPARSED_ARGUMENTS}")
    endif()
    if(NOT AMPC_EXECUTABLE)
        message(FATAL_ERROR "${called}: no ampc was found; set AMPC_EXECUTABLE to the program")
    endif()
    if(NOT model_STATIC AND (model_SYMBOL OR model_EMIT))
        message(FATAL_ERROR "${called}: SYMBOL and EMIT are of models that are linked; add STATIC")
    endif()
    if(model_EMIT AND NOT model_EMIT MATCHES "^[oc]$")
        message(FATAL_ERROR "${called}: EMIT ${model_EMIT}: o or c")
    endif()
    if(model_EMIT STREQUAL "c" AND NOT CMAKE_C_COMPILER)
        message(FATAL_ERROR "${called}: EMIT c: the project has no C; add it to project() or leave EMIT out")
    endif()
    get_filename_component(source "${file}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    get_filename_component(stem "${file}" NAME_WE)
    if(NOT model_NAME)
        set(model_NAME "${stem}")
    endif()
    set(ending so)
    if(model_STATIC AND NOT model_EMIT)
        set(model_EMIT o)
    endif()
    if(model_STATIC)
        set(ending ${model_EMIT})
    endif()
    if(NOT model_OUTPUT)
        set(model_OUTPUT "${model_NAME}.${ending}")
    endif()
    get_filename_component(output "${model_OUTPUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")

    set(command "${AMPC_EXECUTABLE}" "${source}" -o "${output}")
    set(inputs "${source}" "${AMPC_EXECUTABLE}")
    if(model_STATIC)
        if(NOT model_SYMBOL)
            string(MAKE_C_IDENTIFIER "${model_NAME}_model" model_SYMBOL)
        endif()
        list(APPEND command --emit ${model_EMIT} --symbol "${model_SYMBOL}")
    endif()
    if(model_PRECISION)
        list(APPEND command --precision "${model_PRECISION}")
    endif()
    if(model_POLICY)
        get_filename_component(policy "${model_POLICY}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
        if(EXISTS "${policy}")
            list(APPEND inputs "${policy}")
        else() # a built-in one
            set(policy "${model_POLICY}")
        endif()
        list(APPEND command --policy "${policy}")
    endif()
    foreach(define IN LISTS model_DEFINES)
        list(APPEND command -D "${define}")
    endforeach()
    if(CMAKE_C_COMPILER AND NOT "--cc" IN_LIST model_OPTIONS)
        list(APPEND command --cc "${CMAKE_C_COMPILER}")
    endif()
    list(APPEND command ${model_OPTIONS})
    set(dependencies "")
    if(NOT CMAKE_VERSION VERSION_LESS 3.20)
        list(APPEND command -MD)
        set(dependencies DEPFILE "${output}.d")
    endif()
    get_filename_component(folder "${output}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")

    file(RELATIVE_PATH shown "${CMAKE_BINARY_DIR}" "${output}")
    add_custom_command(OUTPUT "${output}" COMMAND ${command} DEPENDS ${inputs} ${dependencies} VERBATIM
        COMMENT "Compiling model ${shown}")
    if(model_STATIC)
        _ampc_add_linked(${target} "${model_NAME}" "${output}" ${model_EMIT})
    else()
        _ampc_add_file(${target} "${model_NAME}" "${output}")
    endif()
endfunction()

cmake_policy(POP)
