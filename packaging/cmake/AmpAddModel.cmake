# amp_add_model(TARGET FILE.amp
#               [NAME name] [OUTPUT file] [PRECISION fp16|bf16|tf32|fp32] [POLICY name|file]
#               [DEFINES NAME=VALUE...] [OPTIONS option...])
#
# Compiles a model when the build does, and again when it, a file that it includes, its policy or ampc has changed.
#
# TARGET    An executable or library that exists: the model is built before it, and its sources see the model's path as
#           AMP_MODEL_<NAME>, a string ("mlp.amp": AMP_MODEL_MLP). Or a new name: a target of its own, built by default;
#           link it to a program, target_link_libraries(app PRIVATE mlp), for the same.
# NAME      The model's name in the file and the macro; the default is FILE without its ending.
# OUTPUT    Where model.so is written; the default is NAME.so in the current binary folder. The target has it as the
#           property AMP_MODEL_<NAME>, for install(FILES).
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

function(amp_add_model target file)
    cmake_parse_arguments(PARSE_ARGV 2 model "" "NAME;OUTPUT;PRECISION;POLICY" "DEFINES;OPTIONS")
    if(model_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "amp_add_model(${target} ${file}): unknown argument ${model_UNPARSED_ARGUMENTS}")
    endif()
    if(NOT AMPC_EXECUTABLE)
        message(FATAL_ERROR "amp_add_model(${target} ${file}): no ampc was found; set AMPC_EXECUTABLE to the program")
    endif()
    get_filename_component(source "${file}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    get_filename_component(stem "${file}" NAME_WE)
    if(NOT model_NAME)
        set(model_NAME "${stem}")
    endif()
    if(NOT model_OUTPUT)
        set(model_OUTPUT "${model_NAME}.so")
    endif()
    get_filename_component(output "${model_OUTPUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")

    set(command "${AMPC_EXECUTABLE}" "${source}" -o "${output}")
    set(inputs "${source}" "${AMPC_EXECUTABLE}")
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
    if(TARGET ${target})
        string(MAKE_C_IDENTIFIER "${target}_${model_NAME}" built)
        add_custom_target(${built} DEPENDS "${output}")
        add_dependencies(${target} ${built})
        _ampc_attach(${target} "${model_NAME}" "${output}" PRIVATE)
    else()
        string(MAKE_C_IDENTIFIER "${target}_model" built)
        add_custom_target(${built} ALL DEPENDS "${output}")
        add_library(${target} INTERFACE)
        add_dependencies(${target} ${built})
        _ampc_attach(${target} "${model_NAME}" "${output}" INTERFACE)
    endif()
endfunction()

cmake_policy(POP)
